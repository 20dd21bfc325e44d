// Nodes as a map by resource with a table beside it, and one node.
import { html, nothing, svg } from './vendor/lit-html.js';
import { counted, number, percent, quantityPart, sortedResources, viewAddress } from './format.js';
import { amountColumns, answeredPart, barPart, chosenPart, colorValues, jobLink, legendPart, problemPart, rowsTable, sectionPart, tableSection, textPart, viewLink } from './parts.js';

const MAP_STEPS = [0, 1, 2, 3, 4];
const LARGEST_CELL = 48;
const HIGHEST_MAP = 400;
const drawnMaps = new WeakMap();
const NODES_PART = 5000;
const NODE_ORDERS = [['name', 'by name'], ['most', 'most used first'], ['least', 'least used first']];
const NODE_AMOUNTS = ['used', 'free', 'allocatable'];
const nodePath = (name) => `/nodes/${encodeURIComponent(name)}`;
const hyperNodesPath = '/hypernodes?limit=5000';
const nodesPath = (offset) => `/nodes?offset=${offset}&limit=${NODES_PART}`;

export const nodesView = {
  title: ({ parts }) => (parts[0] ? `Node ${parts[0]}` : 'Nodes'),
  wanted: ({ route, store }) => (route.parts[0] ? [nodePath(route.parts[0])] : [hyperNodesPath, ...nodeListPaths(store)]),
  body: (context) => {
    const [name] = context.route.parts;
    if (!name) return nodeListPart(context);
    return html`<p>${viewLink(['nodes'], 'All nodes')}</p>${answeredPart(context.store.get(nodePath(name)), nodeDetails)}`;
  },
  drawn: ({ ui }) => {
    const canvas = document.getElementById('node-map');
    if (canvas) drawNodeMap(canvas, ui.shownNodes);
  },
};

function nodeListPaths(store) {
  const total = store.get(nodesPath(0)).document?.total ?? 1;
  return Array.from({ length: Math.ceil(total / NODES_PART) || 1 }, (_, part) => nodesPath(part * NODES_PART));
}

/** Returns rows `{node, part}` in the chosen order, with the chosen filter. */
function shownNodes(store, ui) {
  const documents = nodeListPaths(store).map((path) => store.get(path).document).filter(Boolean);
  const inputs = [ui.nodeResource, ui.nodeOrder, ui.nodeName, ...documents];
  const known = ui.nodeMemo;
  if (known?.inputs.length === inputs.length && inputs.every((it, at) => it === known.inputs[at])) return known.rows;
  const nodes = documents.flatMap((it) => it.items).filter((node) => !ui.nodeName || node.name.includes(ui.nodeName));
  const rows = nodes.map((node) => ({ node, part: quantityPart(node.used[ui.nodeResource] ?? '0', node.allocatable[ui.nodeResource]) }));
  const sign = { most: -1, least: 1 }[ui.nodeOrder];
  const key = (row) => (row.part === null ? 2 : sign * row.part);
  if (sign) rows.sort((l, r) => key(l) - key(r));
  ui.nodeMemo = { inputs, rows };
  return rows;
}

function nodeListPart(context) {
  const { store, ui, update } = context;
  return answeredPart(store.get(nodesPath(0)), ({ items, total }) => {
    const resources = sortedResources(items.flatMap((node) => Object.keys(node.allocatable)));
    if (!resources.includes(ui.nodeResource)) ui.nodeResource = resources[0] ?? '';
    const hyperNodes = store.get(hyperNodesPath).document?.items ?? [];
    ui.shownNodes = shownNodes(store, ui);
    return html`${nodeListPaths(store).slice(1).map((path) => problemPart(store.get(path).problem))}
      <div class="fields">
        ${chosenPart(context, 'nodeResource', 'Resource', ui.nodeResource, resources)}${chosenPart(context, 'nodeOrder', 'Order', ui.nodeOrder ?? 'name', NODE_ORDERS)}
        ${textPart('Name contains', ui.nodeName, (value) => { ui.nodeName = value; update(); })}
      </div>
      <p>${counted(total, 'node')}${ui.shownNodes.length === total ? '' : `, ${number(ui.shownNodes.length)} shown`}.</p>
      <div class="columns beside">${mapPart(context)}${nodeTable(context)}</div>
      ${hyperNodes.length ? sectionPart('HyperNodes', hyperNodeTable(context, hyperNodes)) : nothing}`;
  });
}

function mapPart({ ui, go }) {
  const at = (event) => nodeAtPoint(event.currentTarget, event, ui.shownNodes)?.node;
  const point = (event) => { event.currentTarget.title = nodeSentence(at(event), ui.nodeResource); };
  const choose = (node) => node && go(viewAddress(['nodes', node.name]));
  const label = `Map of ${counted(ui.shownNodes.length, 'node')} by the used part of ${ui.nodeResource}. The table has the same numbers.`;
  return html`<figure><canvas id="node-map" role="img" aria-label=${label} @pointermove=${point} @click=${(event) => choose(at(event))}></canvas>
    <figcaption>Used part of ${ui.nodeResource}: ${nodeMapLegend()}</figcaption></figure>`;
}

function nodeSentence(node, resource) {
  if (!node) return '';
  const all = node.allocatable[resource];
  const amount = all ? `${node.used[resource] ?? '0'} of ${all} ${resource} used` : `no ${resource}`;
  return [`${node.name}: ${amount}`, ...nodeState(node)].join(', ');
}

function nodeState(node) {
  return [...(node.cordoned ? ['cordoned'] : []), ...(node.taints ?? [])];
}

function nodeTable(context) {
  const { shownNodes: rows, nodeResource: resource } = context.ui;
  const columns = [
    ['Node', ({ node }) => viewLink(['nodes', node.name])], ...amountColumns(NODE_AMOUNTS, ({ node }, name) => node[name][resource]),
    ['Part', ({ node }) => percent(node.usedPercent[resource]), 'num'], ['Pods', ({ node }) => node.pods, 'num'], ['State', ({ node }) => nodeState(node).join(' ') || '–', 'wide'],
  ];
  return rowsTable(context, `Nodes and their ${resource}`, columns, rows, 'nodes', 'No node.');
}

function hyperNodeTable(context, rows) {
  const { nodeResource: resource } = context.ui;
  const columns = [
    ['HyperNode', ({ name, depth }) => '\u2003'.repeat(depth) + name], 'tier num', 'nodes num', 'pods num',
    ['', (it) => barPart(it.used[resource], [['scale', it.allocatable[resource]]]), 'bar-cell'],
    ...amountColumns(NODE_AMOUNTS, (it, name) => it[name][resource]),
  ];
  return rowsTable(context, `HyperNodes and their ${resource}`, columns, rows, 'hypernodes');
}

function nodeDetails(node) {
  const amounts = [
    ['Resource', (name) => name], ['', (name) => barPart(node.used?.[name], [['scale', node.allocatable[name]]]), 'bar-cell'],
    ...amountColumns(NODE_AMOUNTS, (resource, name) => node[name]?.[resource]),
  ];
  const jobs = [['Job', (it) => jobLink(it.job)], 'pods num'];
  const labels = [['Label', (it) => it[0]], ['Value', (it) => it[1]]];
  return html`<dl class="facts"><div><dt>State</dt><dd>${nodeState(node).join(' ') || 'schedulable'}</dd></div>
      <div><dt>Pods</dt><dd>${number(node.pods)}</dd></div>
      ${node.hyperNodes ? html`<div><dt>HyperNodes</dt><dd>${node.hyperNodes.join(' ⊂ ')}</dd></div>` : nothing}</dl>
    ${tableSection('Amounts', amounts, sortedResources(Object.keys(node.allocatable ?? {})))}
    ${tableSection('Jobs on it', jobs, node.jobs, 'The answer lists no jobs.')}
    ${tableSection('Labels', labels, Object.entries(node.labels ?? {}), 'The answer lists no labels.')}`;
}

/** Returns cell size, columns and height so that `count` cells fill the area. */
function mapLayout(width, count) {
  const layout = (cell) => {
    const columns = Math.max(1, Math.floor(width / cell));
    return { cell, columns, height: Math.ceil(count / columns) * cell };
  };
  let cell = LARGEST_CELL;
  while (cell > 2 && layout(cell).height > HIGHEST_MAP) cell -= 1;
  return layout(cell);
}

function mapColors() {
  const [outline, mark, back, ...steps] = colorValues(['--outline', '--mark', '--back', ...MAP_STEPS.map((step) => `--step-${step}`)]);
  return { steps, outline, mark, back };
}

/** Draws rows `{node, part}` unless the canvas shows them already. */
function drawNodeMap(canvas, rows) {
  const width = canvas.parentElement.clientWidth;
  const colors = mapColors();
  const scale = window.devicePixelRatio || 1;
  const key = [width, scale, colors.steps.join()].join(' ');
  const drawn = drawnMaps.get(canvas);
  if (width === 0 || (drawn?.key === key && drawn.rows === rows)) return;
  const layout = mapLayout(width, rows.length);
  [canvas.width, canvas.height] = [Math.round(width * scale), Math.round(layout.height * scale)];
  [canvas.style.width, canvas.style.height] = [`${width}px`, `${layout.height}px`];
  const pen = canvas.getContext('2d');
  pen.scale(scale, scale);
  rows.forEach((row, index) => drawCell(pen, colors, layout, row, index));
  drawnMaps.set(canvas, { key, rows, layout });
}

/** Draws a node: hollow without the resource, crossed if cordoned, with a corner for taints. */
function drawCell(pen, colors, { cell, columns }, { node, part }, index) {
  const size = cell - (cell >= 12 ? 2 : cell >= 4 ? 1 : 0);
  const [x, y] = [(index % columns) * cell, Math.floor(index / columns) * cell];
  if (part === null || node.cordoned) {
    const cross = node.cordoned ? `l${size - 1} ${size - 1} m0 ${1 - size} l${1 - size} ${size - 1}` : '';
    drawLines(pen, colors.outline, `M${x + 0.5} ${y + 0.5} h${size - 1} v${size - 1} h${1 - size} z`);
    drawLines(pen, colors.mark, `M${x + 0.5} ${y + 0.5} ${cross}`);
  } else {
    pen.fillStyle = colors.steps[Math.min(MAP_STEPS.length - 1, Math.floor(part * MAP_STEPS.length))];
    pen.fillRect(x, y, size, size);
  }
  if (!node.taints?.length) return;
  drawCorner(pen, colors.back, x + size, y, 0.75 * size);
  drawCorner(pen, colors.mark, x + size, y, 0.5 * size);
}

function drawLines(pen, color, shape) {
  pen.strokeStyle = color;
  pen.stroke(new Path2D(shape));
}

function drawCorner(pen, color, x, y, size) {
  pen.fillStyle = color;
  pen.fill(new Path2D(`M${x} ${y} v${size} l${-size} ${-size} z`));
}

/** Returns the row whose cell is below the pointer. Returns `null` if there is none. */
function nodeAtPoint(canvas, event, rows) {
  const { cell, columns } = drawnMaps.get(canvas)?.layout ?? {};
  const column = Math.floor(event.offsetX / cell);
  return column < columns ? rows[Math.floor(event.offsetY / cell) * columns + column] ?? null : null;
}

function nodeMapLegend() {
  const step = (at) => [svg`<rect fill="var(--step-${at})" width="16" height="16"></rect>`, `${20 * at}–${20 * (at + 1)} %`];
  const marked = (name, shape) => [svg`<path class="hollow" d="M1 1 H15 V15 H1 Z"></path><path class=${name} d=${shape}></path>`, name];
  return legendPart([...MAP_STEPS.map(step), marked('none', ''), marked('cordoned', 'M1 1 L15 15 M15 1 L1 15'), marked('taints', 'M15 1 V8 L8 1 Z')]);
}
