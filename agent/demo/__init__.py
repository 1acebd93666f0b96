"""The agent's whole job once, on a virtual kit and a stand-in cloud, for a person to watch."""
