// A chart as a picture of dots: its file is drawn on a canvas, twice as large, and saved.

export function watchPictures() {
  addEventListener("click", async (event) => {
    const link = event.target.closest?.("a[data-png]");
    if (!link) return;
    event.preventDefault();
    const image = new Image();
    image.src = link.href;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [2 * image.width, 2 * image.height];
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => {
      const saved = document.createElement("a");
      saved.href = URL.createObjectURL(blob);
      saved.download = `${link.dataset.png}-signal.png`;
      saved.click();
      URL.revokeObjectURL(saved.href);
    });
  });
}
