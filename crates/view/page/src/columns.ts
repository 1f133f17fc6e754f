// The columns of the page as text. They are its last elements, which the browser still reads while the page is drawn.

// Calls with each part in order, as soon as it is there, and takes it out of the page. Returns after the last one.
export function eachPart(call: (columns: string) => void): Promise<void> {
  return new Promise((resolve) => {
    const take = () => {
      const isAll = document.readyState !== "loading";
      for (const element of document.querySelectorAll("script.columns")) {
        // The last one may still grow.
        if (!isAll && !element.nextSibling) break;
        call(element.textContent!);
        element.remove();
      }
      if (!isAll) return;
      observer.disconnect();
      resolve();
    };
    const observer = new MutationObserver(take);
    observer.observe(document.body, { childList: true });
    document.addEventListener("DOMContentLoaded", take, { once: true });
    take();
  });
}
