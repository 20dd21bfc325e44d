// Jobs of the last hour by queue, evictions, and curves.
import { html, svg, nothing } from './vendor/lit-html.js';
import { counted, quantityNumber, queryText, sortedResources, viewAddress, visibleName } from './format.js';
import { answeredPart, chosenPart, colorValues, grantColumns, isMissingRoute, jobLink, legendPart, rowsTable, sectionPart, selectPart, textPart, timePart } from './parts.js';
import { ganttPart } from './gantt.js';

const CURVE_HEIGHT = 220;
const drawnCurves = new WeakMap();
const SPANS = [['', 'last hour'], ['15m', 'last 15 minutes'], ['6h', 'last 6 hours'], ['24h', 'last 24 hours']];

export const timelineView = {
  title: () => 'Timeline',
  wanted: ({ route }) => [timelinePath(route)],
  body: (context) => {
    const { route, store } = context;
    const entry = store.get(timelinePath(route));
    const missing = store.isFile ? 'This file has no timeline.' : 'This version does not keep a timeline.';
    if (isMissingRoute(entry)) return html`<p class="quiet">${missing}</p>`;
    return html`${store.isFile ? nothing : timelineFields(context)}${answeredPart(entry, (it) => timelinePart(it, context))}`;
  },
  drawn: ({ ui }) => Object.entries(ui.curves ?? {}).forEach(([id, curve]) => drawCurve(document.getElementById(id), curve)),
};

function timelinePath({ query: { from, queue, namespace } }) {
  return `/timeline${queryText({ from, queue, namespace })}`;
}

function timelineFields({ route, go }) {
  const change = (key) => (value) => go(viewAddress(['timeline'], { ...route.query, [key]: value }));
  const { from = '', queue, namespace } = route.query;
  return html`<div class="fields">${selectPart('Span', from, SPANS, change('from'))}
    ${textPart('Queue', queue, change('queue'), 'all')}${textPart('Namespace', namespace, change('namespace'), 'all')}</div>`;
}

function timelinePart(timeline, context) {
  const { jobs = [], evictions = [], samples = [], from, to, asOf } = timeline;
  const now = asOf?.time;
  return html`<p>From ${timePart(from, now)} to ${timePart(to, now)} UTC: ${counted(jobs.length, 'job')}, ${counted(evictions.length, 'eviction')}.
      ${timeline.truncated ? 'There were more: the answer is cut off.' : ''}</p>
    ${sectionPart('Jobs by queue', html`${ganttPart(timeline, context)}${rowsTable(context, 'Jobs that ran', ranColumns(now), jobs)}`)}
    ${sectionPart('Evictions', rowsTable(context, 'Evictions', evictionTimes(now), evictions))}
    ${sectionPart('Waiting and running', curvePart(context, 'count-curve', samples, ['waiting', 'running'].map((name) => ({ name, amount: (it) => it[name] })), now))}
    ${sectionPart('Allocated', allocatedCurve(context, samples, now))}`;
}

function ranColumns(now) {
  return [
    ['Job', (it) => jobLink(it.job)], 'queue', 'pods num', ['Start (UTC)', (it) => timePart(it.start, now), 'num'],
    ['End (UTC)', (it) => (it.end ? timePart(it.end, now) : 'runs'), 'num'],
  ];
}

function evictionTimes(now) {
  return [
    ['Pod', (it) => visibleName(it.pod, 'pod')], ['Time (UTC)', (it) => timePart(it.time, now), 'num'], ['PodGroup', (it) => jobLink(it.podGroup)], 'queue',
    ...grantColumns,
  ];
}

function allocatedCurve(context, samples, now) {
  const { ui } = context;
  const resources = sortedResources(samples.flatMap((it) => Object.keys(it.allocated ?? {})));
  if (samples.length > 0 && resources.length === 0) return html`<p class="quiet">You may not see what this queue holds.</p>`;
  const resource = resources.includes(ui.curveResource) ? ui.curveResource : resources[0] ?? '';
  const part = (key, name) => ({ name, amount: (it) => it[key]?.[resource] ?? '0' });
  const series = [part('allocated', resource)];
  if (samples.some((it) => it.deserved?.[resource])) series.push(part('deserved', 'deserved'));
  return html`<div class="fields">${chosenPart(context, 'curveResource', 'Resource of the curve', resource, resources)}</div>
    ${curvePart(context, 'allocated-curve', samples, series, now)}`;
}

/** Returns a place for a curve, drawn once it is in the document, and its table. */
function curvePart(context, id, samples, series, now) {
  if (samples.length === 0) return html`<p class="quiet">There are no samples.</p>`;
  (context.ui.curves ??= {})[id] = { samples, series, width: context.width };
  const caption = `${series.map((it) => it.name).join(' and ')} by time`;
  const columns = [['Time (UTC)', (it) => timePart(it.time, now)], ...series.map((it) => [it.name, it.amount, 'num'])];
  const sample = ({ name }, at) => [svg`<path class="curve-${at}" d="M0 9 H24"></path>`, name];
  return html`<figure><div id=${id} class="curve" role="img" aria-label="Curve: ${caption}. The table has the same numbers."></div>
      <figcaption>${legendPart(series.map(sample))}</figcaption></figure>
    <details><summary>Table: ${caption}</summary>${rowsTable(context, caption, columns, samples)}</details>`;
}

/** Draws a curve into an element, or brings the one that is there up to date. */
function drawCurve(element, { samples, series, width }) {
  if (!element || typeof uPlot !== 'function') return;
  const colors = colorValues(['--link', '--second', '--text', '--grid']);
  const key = [series.map((it) => it.name).join(), colors.join()].join(' ');
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
  return [times, ...series.map(({ amount }) => samples.map((it) => quantityNumber(String(amount(it) ?? '0'))))];
}

function curveOptions(series, width, [first, second, text, grid]) {
  const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } };
  const lines = series.map((it, at) => ({ label: it.name, stroke: at ? second : first, width: 2, dash: at ? [6, 4] : undefined, points: { show: false } }));
  return {
    width,
    height: CURVE_HEIGHT,
    legend: { show: false },
    cursor: { drag: { x: false, y: false } },
    scales: { y: { range: (plot, least, most) => [0, most > 0 ? most * 1.05 : 1] } },
    padding: [8, 24, 0, 0],
    axes: [{ ...axis, values: (plot, times) => times.map(clockText) }, { ...axis, size: 64, values: (plot, values) => values.map(shortNumber) }],
    series: [{}, ...lines],
  };
}

function clockText(seconds) {
  return new Date(seconds * 1000).toISOString().slice(11, 19).replace(/:00$/, '');
}

function shortNumber(value) {
  return new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 }).format(value);
}
