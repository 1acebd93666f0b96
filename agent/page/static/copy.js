// Copies a text, and selects where it stands: so it is seen, and can be copied by hand where a browser
// lets no page write to the clipboard.

export async function copy(element, text) {
  const range = document.createRange();
  range.selectNodeContents(element);
  getSelection().removeAllRanges();
  getSelection().addRange(range);
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
