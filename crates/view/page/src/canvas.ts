// Canvases in the device's own pixels, and colours of the theme.

// Sets the size of a canvas in CSS pixels and returns its context, scaled to them.
export function prepare(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
  const ratio = window.devicePixelRatio || 1;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d")!;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

const colors = new Map<string, string>();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => colors.clear());

// A colour of the style sheet, for canvases: those do not know `light-dark()`.
export function themed(name: string): string {
  let color = colors.get(name);
  if (color === undefined) {
    const probe = document.body.appendChild(document.createElement("span"));
    probe.style.color = `var(${name})`;
    color = getComputedStyle(probe).color;
    probe.remove();
    colors.set(name, color);
  }
  return color;
}

// Calls back in the next frame, once for several calls.
export function inFrame(draw: () => void): () => void {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; draw(); });
  };
}
