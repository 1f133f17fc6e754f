// Printing: the graph in the light theme, with all of its rows as far as a canvas can have them.

// The width of a printed graph and its largest height, in pixels of the page.
const PRINT_WIDTH = 1100, PRINT_HEIGHT = 7000;

let isPrinting = false;
addEventListener("beforeprint", () => {
  if (!scene.graph) return;
  isPrinting = true;
  hideTooltip();
  const content = contentHeight(), height = Math.min(content, PRINT_HEIGHT);
  showTheme();
  picture.resize(PRINT_WIDTH, height, 2);
  canvas.style.height = "auto";
  Object.assign(scene, { top: 4, scroll: scene.icicle ? 0 : content - height });
  picture.draw(scene);
});
addEventListener("afterprint", () => {
  isPrinting = false;
  showTheme();
  layout();
});
