// Nodes as a map by resource with a table beside it, and one node.
import { html, svg } from './vendor/lit-html.js';
import { counted, jobName, number, percent, quantityPart, queryText, sortedResources, viewAddress } from './format.js';
import { amountColumns, answeredPart, barPart, chosenPart, colorValues, factsPart, jobLink, legendPart, problemPart, rowsTable, sectionPart, tableSection, textPart, viewLink } from './parts.js';
import { lackColumns } from './job.js';
import { explanationPath } from './jobs.js';

const MAP_STEPS = [0, 1, 2, 3, 4];
const LARGEST_CELL = 48;
const HIGHEST_MAP = 400;
const BAND_HEAD = 20;
const MOST_BANDS = 60;
const drawnMaps = new WeakMap();
const NODES_PART = 5000;
const NODE_ORDERS = [['name', 'by name'], ['most', 'most used first'], ['least', 'least used first']];
const NODE_AMOUNTS = ['used', 'free', 'allocatable'];
const nodePath = (name) => `/nodes/${encodeURIComponent(name)}`;
const hyperNodesPath = '/hypernodes?limit=5000';
const nodesPath = (offset, labels) => `/nodes${queryText({ labels, offset: String(offset), limit: NODES_PART })}`;

export const nodesView = {
  title: ({ parts }) => (parts[0] ? `Node ${parts[0]}` : 'Nodes'),
  wanted: ({ route, store, ui }) => (route.parts[0] ? [nodePath(route.parts[0]), lackingPath(route)] : [hyperNodesPath, '/nodelabels', ...nodeListPaths(store, ui.nodeLabel)]),
  body: (context) => {
    const [name] = context.route.parts;
    if (!name) return nodeListPart(context);
    return html`<p>${viewLink(['nodes'], 'All nodes')}</p>${answeredPart(context.store.get(nodePath(name)), (node) => nodeDetails(node, context.store.get(lackingPath(context.route)).document))}`;
  },
  drawn: ({ ui }) => {
    const canvas = document.getElementById('node-map');
    if (canvas) drawNodeMap(canvas, ui.shownNodes);
  },
};

// Returns the path of what a node is compared with: the job from which the reader comes, else the first ones that wait.
function lackingPath({ query }) {
  return query.for ? explanationPath(query.for.split('/')) : '/explanations?offset=0&limit=100';
}

function nodeListPaths(store, label) {
  const total = store.get(nodesPath(0, label)).document?.total || 1;
  return Array.from({ length: Math.ceil(total / NODES_PART) }, (_, part) => nodesPath(part * NODES_PART, label));
}

// Returns rows `{node, part, band}` with the chosen filter, by the value of the shown label, then in the chosen order.
function shownNodes(ui, label, lists) {
  const documents = lists.map((it) => it.document).filter(Boolean);
  const inputs = [ui.nodeResource, ui.nodeOrder, ui.nodeName, label, ...documents];
  const known = ui.nodeMemo;
  if (known?.inputs.length === inputs.length && inputs.every((it, at) => it === known.inputs[at])) return known.rows;
  const nodes = documents.flatMap((it) => it.items).filter((node) => !ui.nodeName || node.name.includes(ui.nodeName));
  const rows = nodes.map((node) => ({
    node, part: quantityPart(node.used[ui.nodeResource] ?? '0', node.allocatable[ui.nodeResource]), band: label && (node.labels?.[label] || 'no value'),
  }));
  const sign = { most: -1, least: 1 }[ui.nodeOrder];
  const key = (row) => (row.part === null ? 2 : sign * row.part);
  if (sign) rows.sort((l, r) => key(l) - key(r));
  if (label) rows.sort((l, r) => l.band.localeCompare(r.band, 'en', { numeric: true }));
  ui.nodeMemo = { inputs, rows };
  return rows;
}

function nodeListPart(context) {
  const { store, ui, update } = context;
  const listsWith = (label) => nodeListPaths(store, label).map((path) => store.get(path));
  const wanted = listsWith(ui.nodeLabel);
  // Until all nodes have come with another label, those without one stand for them.
  ui.shownLabel = wanted.every((it) => it.document) ? ui.nodeLabel : '';
  const lists = listsWith(ui.shownLabel);
  return answeredPart(lists[0], ({ items, total }) => {
    const resources = sortedResources(items.flatMap((node) => Object.keys(node.allocatable)));
    if (!resources.includes(ui.nodeResource)) ui.nodeResource = resources[0] ?? '';
    const hyperNodes = store.get(hyperNodesPath).document?.items ?? [];
    ui.shownNodes = shownNodes(ui, ui.shownLabel, lists);
    const labels = (store.get('/nodelabels').document?.items ?? []).filter((it) => it.values <= MOST_BANDS).map((it) => it.key);
    return html`${wanted.map((it) => (it === lists[0] ? '' : problemPart(it.problem)))}
      <div class="fields">
        ${chosenPart(context, 'nodeResource', 'Resource', ui.nodeResource, resources)}${chosenPart(context, 'nodeOrder', 'Order', ui.nodeOrder ?? 'name', NODE_ORDERS)}
        ${chosenPart(context, 'nodeLabel', 'Group by label', ui.nodeLabel ?? '', [['', 'none'], ...labels])}
        ${textPart('Name contains', ui.nodeName, (value) => { ui.nodeName = value; update(); })}
      </div><p>${counted(total, 'node')}${ui.shownNodes.length === total ? '' : `, ${number(ui.shownNodes.length)} shown`}.</p>
      <div class="columns beside">${mapPart(context)}${nodeTable(context)}</div>
      ${hyperNodes.length ? sectionPart('HyperNodes', hyperNodeTable(context, hyperNodes)) : ''}`;
  });
}

function mapPart({ ui, go }) {
  const at = (event) => nodeAtPoint(event.currentTarget, event, ui.shownNodes)?.node;
  const point = (event) => { event.currentTarget.title = nodeSentence(at(event), ui.nodeResource); };
  const choose = (node) => node && go(viewAddress(['nodes', node.name]));
  const bands = ui.shownLabel ? `, grouped by ${ui.shownLabel}` : '';
  const label = `Map of ${counted(ui.shownNodes.length, 'node')} by the used part of ${ui.nodeResource}${bands}. The table has the same numbers.`;
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
  const { shownNodes: rows, nodeResource: resource, shownLabel } = context.ui;
  const columns = [
    ['Node', ({ node }) => viewLink(['nodes', node.name])], ...(shownLabel ? [[shownLabel, 'band']] : []), ...amountColumns(NODE_AMOUNTS, ({ node }, name) => node[name][resource]),
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

function nodeDetails(node, lacking) {
  const amounts = [
    ['Resource', (name) => name], ['', (name) => barPart(node.used[name], [['scale', node.allocatable[name]]]), 'bar-cell'],
    ...amountColumns(NODE_AMOUNTS, (resource, name) => node[name][resource]),
  ];
  const jobs = [['Job', (it) => jobLink(it.job)], 'pods num'];
  const labels = [['Label', (it) => it[0]], ['Value', (it) => it[1]]];
  return html`${factsPart([['State', nodeState(node).join(' ') || 'schedulable'], ['Pods', node.pods], ['HyperNodes', node.hyperNodes?.join(' ⊂ ')]])}
    ${tableSection('Amounts', amounts, sortedResources(Object.keys(node.allocatable)))}
    ${tableSection('What it lacks for jobs that wait', [jobs[0], ...lackColumns], lacksOf(node.name, lacking))}
    ${tableSection('Jobs on it', jobs, node.jobs, node.pods ? '' : 'No jobs.')}
    ${tableSection('Labels', labels, Object.entries(node.labels ?? {}))}`;
}

// Returns what a node lacks for one job, or for each job of a list that it comes close to.
function lacksOf(name, lacking) {
  const lackOf = ({ subject, nodes }) => {
    const found = nodes?.nearest.find((it) => it.name === name) ?? (lacking.items ? null : nodes?.groups.find((it) => it.names.includes(name)));
    return found ? [{ ...found, job: jobName(subject) }] : [];
  };
  return lacking && (lacking.items ?? [lacking]).flatMap(lackOf);
}

// Returns cell size, height, and the place of each row. Each value of the label begins a band with a head.
function mapLayout(width, rows) {
  const layout = (cell) => {
    let [x, y, heads] = [-cell, 0, 0];
    const places = rows.map(({ band }, at) => {
      const isHead = band && band !== rows[at - 1]?.band;
      x += cell;
      if (at && (isHead || x + cell > width)) [x, y] = [0, y + cell];
      if (isHead) [y, heads] = [y + BAND_HEAD, heads + BAND_HEAD];
      return { x, y, isHead };
    });
    return { cell, places, height: y + cell, cellHeight: y + cell - heads };
  };
  let cell = Math.ceil(Math.min(LARGEST_CELL, Math.sqrt((width * HIGHEST_MAP) / rows.length)));
  while (cell > 2 && layout(cell).cellHeight > HIGHEST_MAP) cell -= 1;
  return layout(cell);
}

// Draws rows `{node, part, band}` unless the canvas shows them already.
function drawNodeMap(canvas, rows) {
  const width = canvas.parentElement.clientWidth;
  const [outline, mark, back, text, ...steps] = colorValues(['--outline', '--mark', '--back', '--text', ...MAP_STEPS.map((step) => `--step-${step}`)]);
  const scale = window.devicePixelRatio || 1;
  const key = [width, scale, steps].join();
  const drawn = drawnMaps.get(canvas);
  if (width === 0 || (drawn?.key === key && drawn.rows === rows)) return;
  const layout = mapLayout(width, rows);
  [canvas.width, canvas.height] = [Math.round(width * scale), Math.round(layout.height * scale)];
  [canvas.style.width, canvas.style.height] = [`${width}px`, `${layout.height}px`];
  const pen = canvas.getContext('2d');
  pen.scale(scale, scale);
  pen.font = '13px system-ui';
  rows.forEach((row, at) => {
    const place = layout.places[at];
    pen.fillStyle = text;
    if (place.isHead) pen.fillText(row.band, 0, place.y - 6);
    drawCell(pen, { outline, mark, back, steps }, layout.cell, place, row);
  });
  drawnMaps.set(canvas, { key, rows, layout });
}

// Draws a node: hollow without the resource, crossed if cordoned, with a corner for taints.
function drawCell(pen, colors, cell, { x, y }, { node, part }) {
  const size = cell - (cell >= 12 ? 2 : cell >= 4 ? 1 : 0);
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

// Returns the row whose cell is below the pointer, if there is one.
function nodeAtPoint(canvas, { offsetX, offsetY }, rows) {
  const { cell, places = [] } = drawnMaps.get(canvas)?.layout ?? {};
  const isIn = (offset, start) => offset >= start && offset < start + cell;
  return rows[places.findIndex(({ x, y }) => isIn(offsetX, x) && isIn(offsetY, y))];
}

function nodeMapLegend() {
  const step = (at) => [svg`<rect fill="var(--step-${at})" width="16" height="16"></rect>`, `${20 * at}–${20 * (at + 1)} %`];
  const marked = (name, shape) => [svg`<path class="hollow" d="M1 1 H15 V15 H1 Z"></path><path class=${name} d=${shape}></path>`, name];
  return legendPart([...MAP_STEPS.map(step), marked('none', ''), marked('cordoned', 'M1 1 L15 15 M15 1 L1 15'), marked('taints', 'M15 1 V8 L8 1 Z')]);
}
