// Helpers of the browser tests: what a reader gets of the page. They are in every document of a tab.
globalThis.dom = {
  /** Returns the text of a node without what is hidden from assistive technology. */
  text(node) {
    if (!node) return '';
    const copy = node.cloneNode(true);
    copy.querySelectorAll?.('[aria-hidden=true]').forEach((it) => it.remove());
    return copy.textContent.replace(/\s+/g, ' ').trim();
  },

  texts(selector) {
    return [...document.querySelectorAll(selector)].map(dom.text);
  },

  /** True if the view with this title is there with all of its answers. */
  shows(title) {
    const main = document.querySelector('main');
    return dom.text(main?.querySelector('h1')) === title && !main.textContent.includes('Loading …');
  },

  /** Returns the cells of the table with this caption, row by row. Returns `null` if there is no such table. */
  table(caption) {
    const table = [...document.querySelectorAll('table')].find((it) => dom.text(it.caption) === caption);
    const rows = table ? [...table.tBodies[0].rows].filter((it) => it.ariaHidden !== 'true') : null;
    return rows?.map((row) => [...row.cells].map(dom.text)) ?? null;
  },

  /** Returns pairs of a list of facts: name and value. */
  facts(selector) {
    return [...document.querySelectorAll(`${selector} > div`)].map((it) => [dom.text(it.querySelector('dt')), dom.text(it.querySelector('dd'))]);
  },

  /** Returns the button or link with this name. */
  action(name) {
    return [...document.querySelectorAll('button, a')].find((it) => (it.ariaLabel ?? dom.text(it)) === name);
  },

  /** Returns the control that a label with this text has. */
  field(label) {
    const isText = (node) => node.nodeType === Node.TEXT_NODE;
    const isNamed = (it) => [...it.childNodes].filter(isText).map((node) => node.data).join('').trim() === label;
    return [...document.querySelectorAll('label.field')].find(isNamed)?.querySelector('input, select, textarea');
  },

  choose(label, value) {
    const select = dom.field(label);
    select.value = value;
    select.dispatchEvent(new Event('change', { bubbles: true }));
  },

  /** Returns the name of what has the focus. */
  focused() {
    const it = document.activeElement;
    return it.ariaLabel ?? dom.text(it);
  },

  hide(isHidden) {
    Object.defineProperty(document, 'hidden', { value: isHidden, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
  },

  /** Returns texts whose contrast is below 4.5, each with its ratio and colours, and the number of texts. */
  contrasts() {
    const found = [...dom.textElements()].map(([element, text, color]) => {
      const back = dom.background(element);
      const ratio = dom.contrast(dom.color(color), back);
      return { text: text.slice(0, 40), ratio, color, back: back.join() };
    });
    return { count: found.length, low: found.filter((it) => !(it.ratio >= 4.5)) };
  },

  *textElements() {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const element = node.parentElement;
      const isShown = node.data.trim() && element.checkVisibility() && !element.closest('option, noscript, title');
      if (!isShown) continue;
      const style = getComputedStyle(element);
      yield [element, node.data.trim(), element instanceof SVGElement ? style.fill : style.color];
    }
    for (const element of document.querySelectorAll('input, select, textarea')) {
      const style = getComputedStyle(element, element.placeholder ? '::placeholder' : null);
      yield [element, element.placeholder || element.value, style.color];
    }
  },

  /**
   * Returns the marks of pictures whose contrast is below 3, each with its ratio and colours, and the number of marks. A mark
   * is what tells something: not the ground of a bar, a line of a grid, or what has no colour.
   */
  markContrasts() {
    const found = [];
    // One after the other: samples are in the document only for as long as they are looked at.
    for (const [mark, back] of dom.marks()) {
      const style = getComputedStyle(mark);
      const colors = [style.fill, style.stroke].filter((it) => it.startsWith('rgb') && dom.color(it)[3] === 1);
      const ratio = Math.max(0, ...colors.map((it) => dom.contrast(dom.color(it), back)));
      found.push({ mark: mark.outerHTML.slice(0, 80), ratio, colors, back: back.join() });
    }
    return { count: found.length, low: found.filter((it) => !(it.ratio >= 3)) };
  },

  /** Yields each mark with what lies behind it: the page, and the ground of the bar that it is on. */
  *marks() {
    const shapes = 'rect, line, path, circle, polygon, polyline';
    for (const mark of document.querySelectorAll(shapes)) {
      if (!mark.closest('svg') || mark.closest('defs, clipPath') || !mark.checkVisibility()) continue;
      if (mark.matches('.bar-room, .grid, .band, [d=""]')) continue;
      yield [mark, dom.background(mark.closest('svg').parentElement)];
      const ground = mark.closest('svg').querySelector('.bar-room');
      if (ground) yield [mark, dom.color(getComputedStyle(ground).fill)];
    }
    // Canvases are painted with these.
    const names = ['step-0', 'step-1', 'step-2', 'step-3', 'step-4', 'outline', 'mark', 'link', 'second'];
    for (const name of document.querySelector('canvas') ? names : []) {
      const sample = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
      sample.style.fill = `var(--${name})`;
      const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
      svg.append(sample);
      document.body.append(svg);
      yield [sample, dom.background(document.body)];
      svg.remove();
    }
  },

  color(text) {
    const [red, green, blue, alpha = 1] = text.match(/[\d.]+/g).map(Number);
    return [red, green, blue, alpha];
  },

  background(element) {
    for (let at = element; at; at = at.parentElement) {
      const color = dom.color(getComputedStyle(at).backgroundColor);
      if (color[3] === 1) return color;
    }
    return [255, 255, 255, 1];
  },

  luminance([red, green, blue]) {
    const linear = (value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
  },

  /** Returns the contrast of two colours by WCAG 2.2. A colour that is not opaque has none. */
  contrast(color, back) {
    if (color[3] !== 1) return 0;
    const [dark, light] = [dom.luminance(color), dom.luminance(back)].sort((l, r) => l - r);
    return (light + 0.05) / (dark + 0.05);
  },
};
