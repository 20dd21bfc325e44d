// Jobs of the last hour by queue, evictions, and curves.
import { html, nothing, svg } from './vendor/lit-html.js';
import { counted, isHiddenName, number, quantityNumber, queryText, shortTime, sortedResources, viewAddress, visibleName } from './format.js';
import { answeredPart, chosenPart, colorValues, grantColumns, grantText, jobLink, legendPart, rowsTable, sectionPart, selectPart, textPart, timePart } from './parts.js';

const CURVE_HEIGHT = 220;
const MOST_BARS = 4000;
const MOST_ROWS = 40;
const ROW = 10; // height of a row, of the name of a band, of the axis, in pixels
const HEAD = 22;
const AXIS = 24;
const drawnCurves = new WeakMap();
const SPANS = [['', 'hour'], ['15m', '15 minutes'], ['6h', '6 hours'], ['24h', '24 hours']];

export const timelineView = {
  title: () => 'Timeline',
  wanted: ({ route }) => [timelinePath(route)],
  body: (context) => {
    const { route, store } = context;
    return html`${store.isFile ? '' : timelineFields(context)}${answeredPart(store.get(timelinePath(route)), (it) => timelinePart(it, context))}`;
  },
  drawn: ({ ui }) => Object.entries(ui.curves ?? {}).forEach(([id, curve]) => drawCurve(document.getElementById(id), curve)),
};

function timelinePath({ query: { from, queue, namespace } }) {
  return `/timeline${queryText({ from, queue, namespace })}`;
}

function timelineFields({ route, go }) {
  const change = (key) => (value) => go(viewAddress(['timeline'], { ...route.query, [key]: value }));
  const { from = '', queue, namespace } = route.query;
  return html`<div class="fields">${selectPart('Last', from, SPANS, change('from'))}
    ${textPart('Queue', queue, change('queue'), 'all')}${textPart('Namespace', namespace, change('namespace'), 'all')}</div>`;
}

function timelinePart(timeline, context) {
  const { jobs, evictions, samples, from, bindsFrom, to, asOf: { time: now } } = timeline;
  return html`<p>From ${timePart(from, now)} to ${timePart(to, now)} UTC: ${counted(jobs.length, 'job')}, ${counted(evictions.length, 'eviction')}.
      ${timeline.truncated ? 'There were more: the answer is cut off.' : ''} ${bindsFrom ? `Bound pods are counted since ${shortTime(bindsFrom, now)}.` : ''}</p>
    ${sectionPart('Jobs by queue', html`${ganttPart(timeline, context)}${rowsTable(context, 'Jobs that ran', ranColumns(now), jobs)}`)}
    ${sectionPart('Evictions', rowsTable(context, 'Evictions', evictionTimes(now), evictions))}
    ${sectionPart('Waiting and running', curvePart(context, 'count-curve', samples, ['waiting', 'running'].map((name) => [name, (it) => it[name]]), now))}
    ${sectionPart('Allocated', allocatedCurve(context, samples, now))}`;
}

function timeColumn(name, now) {
  return [`${name} (UTC)`, (it) => timePart(it[name.toLowerCase()], now), 'num'];
}

function ranColumns(now) {
  const times = ['Created', 'Admitted', 'Start'].map((name) => timeColumn(name, now));
  return [['Job', (it) => jobLink(it.job)], 'queue', 'pods num', 'bound num', ...times, ['End (UTC)', (it) => (it.end ? timePart(it.end, now) : 'runs'), 'num']];
}

function evictionTimes(now) {
  return [['Pod', (it) => visibleName(it.pod, 'pod')], timeColumn('Time', now), ['PodGroup', (it) => jobLink(it.podGroup)], 'queue', ...grantColumns];
}

// Returns jobs in rows without overlap. Those beyond the last row or bar are left out.
function packRows(jobs, end, mostBars) {
  const rows = [];
  const placed = [];
  for (const job of jobs) {
    const from = Date.parse(job.start);
    let row = rows.findIndex((free) => free <= from);
    if (row < 0) row = rows.length;
    if (row >= MOST_ROWS || placed.length >= mostBars) continue;
    rows[row] = job.end ? Date.parse(job.end) : end;
    placed.push({ job, row, from, to: rows[row] });
  }
  return { placed, count: rows.length };
}

function bandsOf(jobs, end) {
  const sorted = [...jobs].sort((l, r) => (l.start < r.start ? -1 : 1));
  const bands = Object.entries(Object.groupBy(sorted, (job) => job.queue)).sort();
  return bands.map(([queue, ofQueue]) => ({ queue, total: ofQueue.length, ...packRows(ofQueue, end, MOST_BARS / bands.length) }));
}

function ganttPart({ jobs, evictions, from, to, asOf }, { width, go }) {
  if (jobs.length + evictions.length === 0) return '';
  const [start, end] = [Date.parse(from), Date.parse(to)];
  const bands = bandsOf(jobs, end);
  const place = (time) => (Math.min(1, Math.max(0, (time - start) / Math.max(1, end - start))) * (width - 2));
  const shown = bands.reduce((sum, band) => sum + band.placed.length, 0);
  const clicked = (event) => {
    const { address } = event.target.closest('[data-address]')?.dataset ?? {};
    if (address) go(address);
  };
  let top = AXIS;
  const parts = bands.map((band) => {
    const part = bandPart(band, top, width, place, asOf.time);
    top += HEAD + band.count * ROW + 6;
    return part;
  });
  const height = top + (evictions.length ? HEAD + 18 : 0);
  const label = `${counted(shown, 'job')} over time by queue, and ${counted(evictions.length, 'eviction')}. The tables have the same times.`;
  return html`<figure class="gantt"><svg width=${width} height=${height} role="img" aria-label=${label} @click=${clicked}>
      ${axisPart(start, end, width, height, place, asOf.time)}${parts}
      ${evictions.length ? evictionMarks(evictions, top, place, asOf.time) : ''}</svg>
    <figcaption>${shown < jobs.length ? `The picture shows ${number(shown)} of ${number(jobs.length)} jobs, the table all of them. ` : ''}
      ${legendPart([[barShape(0, 24, 5, false), 'has ended'], [barShape(0, 24, 5, true), 'runs'], [evictionShape(12, 4), 'eviction']])}</figcaption></figure>`;
}

function bandPart({ queue, placed, total }, top, width, place, now) {
  const bar = ({ job, row, from, to }) => {
    const x = place(from);
    const y = top + HEAD + row * ROW;
    const title = `${visibleName(job.job)}, ${counted(job.pods, 'pod')}, ${shortTime(job.start, now)} to ${job.end ? shortTime(job.end, now) : 'now'}`;
    const address = isHiddenName(job.job) ? nothing : viewAddress(['jobs', ...job.job.split('/')]);
    return svg`<g data-address=${address}>${barShape(x, Math.max(2, place(to) - x - 1), y, !job.end)}<title>${title}</title></g>`;
  };
  return svg`<g><line class="band" x1="0" x2=${width} y1=${top} y2=${top}></line>
    <text x="2" y=${top + 15}>${queue || 'no queue'} (${counted(total, 'job')})</text>${placed.map(bar)}</g>`;
}

// Returns a bar. That of a job that runs has a point at its end.
function barShape(x, width, y, runs) {
  const point = runs ? Math.min(4, width) : 0;
  return svg`<path class=${runs ? 'running' : 'ended'} d="M${x} ${y} h${width - point} l${point} 4 l${-point} 4 h${point - width} z"></path>`;
}

function evictionShape(x, y) {
  return svg`<path class="eviction" d="M${x - 5} ${y} h10 l-5 10 z"></path>`;
}

function axisPart(start, end, width, height, place, now) {
  const count = Math.max(2, Math.min(8, Math.floor(width / 110)));
  const times = Array.from({ length: count }, (_, at) => start + ((end - start) * at) / count);
  return svg`${times.map((time) => svg`<line class="grid" x1=${place(time)} x2=${place(time)} y1="0" y2=${height}></line>
    <text class="tick" x=${place(time) + 3} y="13">${shortTime(new Date(time).toISOString(), now)}</text>`)}`;
}

function evictionMarks(evictions, top, place, now) {
  const mark = (it) => svg`<g>${evictionShape(place(Date.parse(it.time)), top + HEAD)}
    <title>${visibleName(it.pod, 'pod')}, ${it.action}, ${shortTime(it.time, now)}, ${grantText(it)}</title></g>`;
  return svg`<g><text x="2" y=${top + 15}>Evictions</text>${evictions.slice(-MOST_BARS).map(mark)}</g>`;
}

function allocatedCurve(context, samples, now) {
  const { ui } = context;
  const resources = sortedResources(samples.flatMap((it) => Object.keys(it.allocated ?? {})));
  if (samples.length && !resources.length) return html`<p class="quiet">You may not see what this queue holds.</p>`;
  const resource = resources.includes(ui.curveResource) ? ui.curveResource : resources[0] ?? '';
  const part = (key, name) => [name, (it) => it[key]?.[resource] ?? '0'];
  const series = [part('allocated', resource)];
  if (samples.some((it) => it.deserved?.[resource])) series.push(part('deserved', 'deserved'));
  return html`<div class="fields">${chosenPart(context, 'curveResource', 'Resource of the curve', resource, resources)}</div>
    ${curvePart(context, 'allocated-curve', samples, series, now)}`;
}

// Returns a place for a curve, drawn once it is in the document, and its table.
function curvePart(context, id, samples, series, now) {
  if (samples.length === 0) return html`<p class="quiet">There are no samples.</p>`;
  (context.ui.curves ??= {})[id] = { samples, series, width: context.width };
  const caption = `${series.map(([name]) => name).join(' and ')} by time`;
  return html`<figure><div id=${id} class="curve" role="img" aria-label="Curve: ${caption}. The table has the same numbers."></div>
      <figcaption>${legendPart(series.map(([name], at) => [svg`<path class="curve-${at}" d="M0 9 H24"></path>`, name]))}</figcaption></figure>
    <details><summary>Table: ${caption}</summary>${rowsTable(context, caption, [timeColumn('Time', now), ...series.map((it) => [...it, 'num'])], samples)}</details>`;
}

// Draws a curve into an element, or brings the one that is there up to date.
function drawCurve(element, { samples, series, width }) {
  if (!element || typeof uPlot !== 'function') return;
  const colors = colorValues(['--link', '--second', '--text', '--grid']);
  const key = [series.map(([name]) => name), colors].join();
  const drawn = drawnCurves.get(element);
  if (drawn?.key === key) {
    if (drawn.width !== width) drawn.plot.setSize({ width, height: CURVE_HEIGHT });
    if (drawn.samples !== samples) drawn.plot.setData(curveData(samples, series));
    Object.assign(drawn, { width, samples });
    return;
  }
  drawn?.plot.destroy();
  const plot = new uPlot(curveOptions(series, width, colors), curveData(samples, series), element);
  drawnCurves.set(element, { key, width, samples, plot });
}

function curveData(samples, series) {
  const times = samples.map((it) => Date.parse(it.time) / 1000);
  return [times, ...series.map(([, amount]) => samples.map((it) => quantityNumber(String(amount(it) ?? '0'))))];
}

function curveOptions(series, width, [first, second, text, grid]) {
  const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } };
  const lines = series.map((it, at) => ({ stroke: at ? second : first, width: 2, dash: at ? [6, 4] : undefined, points: { show: false } }));
  return {
    width, height: CURVE_HEIGHT, padding: [8, 24, 0, 0], legend: { show: false }, cursor: { drag: { x: false, y: false } },
    scales: { y: { range: (plot, least, most) => [0, most > 0 ? most * 1.05 : 1] } },
    axes: [
      { ...axis, values: (plot, times) => times.map((it) => new Date(it * 1000).toISOString().slice(11, 19).replace(/:00$/, '')) },
      { ...axis, size: 64, values: (plot, values) => values.map((it) => it?.toLocaleString('en', { notation: 'compact', maximumSignificantDigits: 3 })) },
    ],
    series: [{}, ...lines],
  };
}
