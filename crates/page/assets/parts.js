// Pieces of several views. Of long tables only the rows in sight are in the document.
import { html, svg, nothing } from './vendor/lit-html.js';
import { counted, isHiddenName, number, quantityNumber, shortTime, viewAddress, visibleName } from './format.js';

const ROWS_BEYOND = 6; // rows out of sight, on either side
const WINDOW_PART = 0.65; // height of a table that scrolls, as part of the page
const LIST_PART = 100;
const MARKS = ['deserved', 'guarantee', 'capability'];
const MOVING_CODES = ['Placed', 'Binding', 'AwaitsVictims', 'WaitsForRelease', 'NextCycle'];
const FAULT_CODES = ['Invalid', 'NoGroup', 'QueueMissing', 'NotValid', 'NeverFits', 'BindFailed', 'Gone'];

export function problemPart(problem) {
  return problem && html`<div class="problem"><p><strong>${problem.code || 'No answer'}</strong> ${problem.sentence}</p>
    ${problem.hint && html`<p>Hint: ${problem.hint}</p>`}</div>`;
}

// Returns the body of a view once its document is there, and its problem.
export function answeredPart(entry, body) {
  if (entry.document) return html`${problemPart(entry.problem)}${body(entry.document)}`;
  return entry.problem ? problemPart(entry.problem) : html`<p class="quiet">Loading …</p>`;
}

// Returns a section with its heading, or nothing if there is no content.
export function sectionPart(title, content) {
  if (!content) return '';
  const id = title.toLowerCase().replace(/\W+/g, '-');
  return html`<section aria-labelledby=${id}><h2 id=${id}>${title}</h2>${content}</section>`;
}

// Returns a section with a table of its title. Without rows it is `empty`, or nothing.
export function tableSection(title, columns, rows, empty) {
  return sectionPart(title, tablePart(title, columns, rows, empty));
}

// Returns a table below a heading of its caption, or nothing if there are no rows.
export function titledTable(title, columns, rows) {
  return rows?.length ? html`<h3>${title}</h3>${tablePart(title, columns, rows)}` : '';
}

// Returns the code of a job, with a shape and a colour for its kind.
export function codePart(code) {
  const [kind, shape] = MOVING_CODES.includes(code) ? ['moving', '▸'] : FAULT_CODES.includes(code) ? ['fault', '▲'] : ['waits', '■'];
  return html`<span class="code ${kind}"><span aria-hidden="true">${shape}</span> ${code}</span>`;
}

// Returns facts: pairs of name and value. Those without a value are left out.
export function factsPart(facts, name = 'facts') {
  const shown = facts.filter(([, value]) => value !== undefined);
  return html`<dl class=${name}>${shown.map(([key, value]) => html`<div><dt>${key}</dt><dd>${cellText(value)}</dd></div>`)}</dl>`;
}

// Returns a link to a view: `['queues', 'research']`.
export function viewLink(parts, text = parts.at(-1), query = {}) {
  return html`<a href=${viewAddress(parts, query)}>${text}</a>`;
}

// Returns `namespace/name` of a job as a link, or that it may not be seen.
export function jobLink(job) {
  if (!job) return '–';
  if (isHiddenName(job)) return html`<span class="quiet">${visibleName(job)}</span>`;
  const [namespace, name] = job.split('/');
  return name ? viewLink(['jobs', namespace, name], job) : job;
}

export function timePart(time, now) {
  return time ? html`<time datetime=${time} title=${time}>${shortTime(time, now)}</time>` : '–';
}

// Returns a table. A column is `[head, content, classes]`, where `content` is the key of a value in a row, or a function of
// the row; or `'key classes'`, if its head is the key. Without rows it is the sentence `empty`, or nothing.
export function tablePart(caption, columns, rows, empty) {
  if (!rows?.length) return empty && html`<p class="quiet">${empty}</p>`;
  return tableFrame(caption, columns, rows.map((row) => html`<tr>${rowCells(columns, row)}</tr>`));
}

// Returns a table in a region that scrolls. `count`: all rows, if some are left out.
function tableFrame(caption, columns, rows, { name = 'scroll', count, scrolled } = {}) {
  return html`<div class=${name} role="group" tabindex="0" aria-label=${caption} @scroll=${scrolled}><table aria-rowcount=${count ?? nothing}>
    <caption class="hidden">${caption}</caption><thead><tr aria-rowindex=${count ? 1 : nothing}>${columns.map(columnHead)}</tr></thead><tbody>${rows}</tbody>
  </table></div>`;
}

function columnParts(column) {
  if (Array.isArray(column)) return column;
  const [key, classes] = column.split(' ');
  return [key[0].toUpperCase() + key.slice(1), key, classes];
}

function columnHead(column) {
  const [head, , classes] = columnParts(column);
  return html`<th scope="col" class=${classes}>${head || html`<span class="hidden">Bar</span>`}</th>`;
}

function cellText(value) {
  return typeof value === 'number' ? number(value) : value;
}

function rowCells(columns, row) {
  return columns.map((column, at) => {
    const [, content, classes] = columnParts(column);
    const text = cellText(typeof content === 'string' ? row[content] ?? '–' : content(row));
    return at === 0 ? html`<th scope="row" class=${classes}>${text}</th>` : html`<td class=${classes}>${text}</td>`;
  });
}

function rowHeight() {
  return 2 * (parseFloat(getComputedStyle(document.documentElement).fontSize) || 16);
}

// Returns the rows from `first` to before `last` that are in the document.
function visibleRows(windows, name, total) {
  const inSight = Math.ceil((WINDOW_PART * window.innerHeight) / rowHeight());
  const top = Math.min(windows[name] ?? 0, Math.max(0, total - inSight));
  return { first: Math.max(0, top - ROWS_BEYOND), last: Math.min(total, top + inSight + ROWS_BEYOND) };
}

// Returns the path of a part of a list, by number. `pathOf` gives that of a range.
function partPath(pathOf, part) {
  return pathOf(`offset=${part * LIST_PART}&limit=${LIST_PART}`);
}

// Returns the paths of the parts of a list in sight.
export function listPaths({ ui, store }, pathOf) {
  const paths = [partPath(pathOf, 0)];
  const { first, last } = visibleRows(ui.windows, pathOf(''), store.get(paths[0]).document?.total ?? 1);
  for (let part = Math.max(1, Math.floor(first / LIST_PART)); part * LIST_PART < last; part += 1) paths.push(partPath(pathOf, part));
  return paths;
}

// Returns a list of jobs, whose parts are asked for as they come in sight. `table(list)` gives caption and columns.
export function listPart(context, pathOf, table) {
  const { store } = context;
  const rowAt = (index) => store.get(partPath(pathOf, Math.floor(index / LIST_PART))).document?.items[index % LIST_PART];
  return answeredPart(store.get(partPath(pathOf, 0)), (list) => {
    const { total, rows = total } = list; // a file may have the first rows alone
    return html`<p>${counted(total, 'job')}${rows < total ? `, the first ${number(rows)} are listed` : ''}.</p>
    ${rows ? windowedTable(context, { ...table(list), name: pathOf(''), total: rows, rowAt }) : ''}`;
  });
}

// Returns a table of rows that are all there. `name` stands for the place to which it is scrolled.
export function rowsTable(context, caption, columns, rows, name = caption, empty) {
  return windowedTable(context, { name, caption, columns, total: rows.length, rowAt: (index) => rows[index], empty });
}

// Returns a table of `total` rows. `rowAt(index)` gives a row, or nothing if not loaded.
function windowedTable({ ui, update }, { name, caption, columns, total, rowAt, empty = 'None.' }) {
  if (total === 0) return html`<p class="quiet">${empty}</p>`;
  const { first, last } = visibleRows(ui.windows, name, total);
  const height = rowHeight();
  const scrolled = (event) => {
    const top = Math.floor(event.target.scrollTop / height);
    if (Math.abs(top - (ui.windows[name] ?? 0)) < ROWS_BEYOND / 2 && top !== 0) return;
    ui.windows[name] = top;
    update();
  };
  const rows = [];
  for (let index = first; index < last; index += 1) rows.push(windowedRow(columns, rowAt(index), index));
  const all = [spacer(first * height, columns), rows, spacer((total - last) * height, columns)];
  return tableFrame(caption, columns, all, { name: 'scroll window', count: total + 1, scrolled });
}

function windowedRow(columns, row, index) {
  const cells = row ? rowCells(columns, row) : html`<td class="quiet" colspan=${columns.length}>Loading …</td>`;
  return html`<tr class="row" aria-rowindex=${index + 2}>${cells}</tr>`;
}

function spacer(height, columns) {
  return height > 0 ? html`<tr aria-hidden="true"><td colspan=${columns.length} height=${height} class="spacer"></td></tr>` : '';
}

// Columns that say for whom and with whose consent a pod was evicted.
export const grantColumns = ['action', ['For', (it) => jobLink(it.forJob ?? it.for)], ['Granted by', grantText]];

export function grantText({ plugins, tier, minimal }) {
  return `${plugins?.join(', ') || '–'}${tier ? ` (tier ${tier})` : ''}${minimal ? `, each ${minimal} needed` : ''}`;
}

// Returns columns of amounts. `amountOf` gives that of a row by its name.
export function amountColumns(names, amountOf) {
  return names.map((name) => [columnParts(name)[0], (row) => amountOf(row, name) ?? '–', 'num']);
}

// Returns a bar: how much is used of the largest amount, and a mark `[name, amount]` for each other amount.
export function barPart(used, marks) {
  const values = marks.map(([name, amount]) => [name, quantityNumber(amount)]);
  const largest = Math.max(quantityNumber(used), ...values.map((it) => it[1]));
  if (!(largest > 0)) return '–';
  const place = (value) => `${((98 * value) / largest).toFixed(2)}%`;
  const mark = ([name, value]) => (value > 0 ? svg`<svg x=${place(value)} overflow="visible">${markShape(name)}</svg>` : '');
  return html`<svg class="bar" width="100%" height="18" aria-hidden="true" focusable="false">
    <rect class="bar-room" y="4" width="98%" height="10"></rect>
    <rect class="bar-used" y="4" width=${place(quantityNumber(used))} height="10"></rect>${values.map(mark)}</svg>`;
}

export function queueBar(queue, resource) {
  return barPart(queue.allocated?.[resource], MARKS.map((name) => [name, queue[name]?.[resource]]));
}

// Returns a mark at x = 0: a triangle below, a line, a bracket. `scale` has no shape.
function markShape(name) {
  const shapes = {
    deserved: ['--text', 'M-1.5 0 H1.5 V18 H-1.5 Z'], guarantee: ['--guarantee', 'M0 11 L4 18 H-4 Z'], capability: ['--mark', 'M-5 1 H1.5 V17 H-5 V15 H-1 V3 H-5 Z'],
  };
  const [color, shape] = shapes[name] ?? [];
  return shape && svg`<path class="mark" fill="var(${color})" d=${shape}></path>`;
}

// Returns the values of colours of the style sheet, by name.
export function colorValues(names) {
  const style = getComputedStyle(document.documentElement);
  return names.map((name) => style.getPropertyValue(name).trim());
}

// Returns what shapes mean: items `[shape, text]`, a shape at most 24 by 18.
export function legendPart(items) {
  return html`<ul class="legend">${items.map(([shape, text]) => html`<li><svg width="24" height="18" aria-hidden="true">${shape}</svg> ${text}</li>`)}</ul>`;
}

export function markLegend() {
  const marks = MARKS.map((name) => [svg`<g transform="translate(16)">${markShape(name)}</g>`, name]);
  return legendPart([[svg`<rect class="bar-used" y="4" width="20" height="10"></rect>`, 'allocated'], ...marks]);
}

// Returns a choice of one value. An option is a text, or `[value, text]`.
export function selectPart(label, value, options, change) {
  const pairs = options.map((it) => [it].flat());
  return html`<label class="field">${label}
    <select @change=${(event) => change(event.target.value)}>
      ${pairs.map(([key, text = key]) => html`<option value=${key} .selected=${key === value}>${text}</option>`)}
    </select></label>`;
}

export function chosenPart({ ui, update }, key, label, value, options) {
  return selectPart(label, value, options, (chosen) => { ui[key] = chosen; update(); });
}

// Returns a field for a line of text. `change` gets it when it is complete.
export function textPart(label, value, change, placeholder = '') {
  return html`<label class="field">${label}
    <input type="text" autocomplete="off" placeholder=${placeholder} .value=${value ?? ''} @change=${(event) => change(event.target.value.trim())}></label>`;
}
