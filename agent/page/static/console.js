// The console of one kit is in another file once there is one.
export function followConsole() {}
