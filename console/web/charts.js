// Charts: lag, and what is committed and produced per second, of chosen partitions.
import { timeOfDay } from "./common.js";
import uPlot from "./uplot.js";

const CHOSEN_MAX = 8;
const POINTS_MAX = 1_800; // of a partition: an hour of events
const COLOURS = {
  light: ["#1f77b4", "#c44e00", "#2b8a3e", "#b02a37", "#7048a8", "#8c5a2b", "#c2255c", "#5c6370"],
  dark: ["#6cb6ff", "#ffa657", "#7ee787", "#ff7b72", "#d2a8ff", "#d7ba7d", "#ff9bce", "#c9d1d9"],
};

class Series {
  constructor(topic, partition) {
    this.topic = topic;
    this.partition = partition;
    this.points = []; // [seconds, lag, committed, end]
  }

  add(seconds, lag, committed, end) {
    const last = this.points.at(-1);
    if (last && seconds <= last[0]) return;
    this.points.push([seconds, lag, committed, end]);
    if (this.points.length > POINTS_MAX) this.points.shift();
  }
}

export class LagCharts {
  /** `content` is the answer of /api/lag/windows. */
  constructor(content) {
    this.series = new Map();
    for (const each of content.windows) {
      const series = this.#series(each.topic, each.partition);
      let at = 0;
      for (const [ms, offset, lag] of each.commits) {
        while (at < each.ends.length && each.ends[at][0] < ms) at += 1;
        const end = each.ends[at]?.[1] ?? null;
        series.add(Math.floor(ms / 1000), lag, offset, end);
      }
    }
    const worst = [...this.series.values()].sort((one, other) => (other.points.at(-1)?.[1] ?? 0) - (one.points.at(-1)?.[1] ?? 0));
    this.chosen = new Set(worst.slice(0, CHOSEN_MAX).map((each) => key(each.topic, each.partition)));
    this.charts = [];
    this.elements = [];
  }

  #series(topic, partition) {
    const name = key(topic, partition);
    if (!this.series.has(name)) this.series.set(name, new Series(topic, partition));
    return this.series.get(name);
  }

  has(topic, partition) {
    return this.chosen.has(key(topic, partition));
  }

  choose(topic, partition, is) {
    this.#series(topic, partition);
    if (is) this.chosen.add(key(topic, partition));
    else this.chosen.delete(key(topic, partition));
    this.redraw();
  }

  /** An event about offsets. */
  add(event) {
    const seconds = Math.floor(event.at_ms / 1000);
    let isNew = false;
    for (const [topic, partition, committed, end] of event.partitions) {
      isNew ||= !this.series.has(key(topic, partition)) && this.chosen.size < CHOSEN_MAX;
      if (isNew && this.chosen.size < CHOSEN_MAX) this.chosen.add(key(topic, partition));
      this.#series(topic, partition).add(seconds, end === null ? null : Math.max(0, end - committed), committed, end);
    }
    if (isNew) this.redraw();
    else this.#update();
  }

  attach(...elements) {
    this.elements = elements;
    this.redraw();
    const observer = new ResizeObserver(() => {
      this.charts.forEach((chart, at) => chart.setSize(size(this.elements[at])));
    });
    for (const element of elements) observer.observe(element);
  }

  /** Other partitions, or other colours. */
  redraw() {
    if (!this.elements.length) return;
    for (const chart of this.charts) chart.destroy();
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--quiet").trim();
    const line = style.getPropertyValue("--line").trim();
    const isDark = document.documentElement.dataset.theme
      ? document.documentElement.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    const colours = COLOURS[isDark ? "dark" : "light"];
    const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
    const [lag, rates] = this.#data();
    const chosen = this.#chosenSeries();
    const label = (each) => `${each.topic} ${each.partition}`;
    const lines = chosen.map((each, at) => ({ label: label(each), stroke: colours[at % colours.length], width: 1.5, spanGaps: true, points: { show: false } }));
    const dashes = chosen.map((each, at) => ({ ...lines[at], label: `${label(each)} produced`, dash: [4, 4], width: 1 }));
    const numbers = (self, values) => values.map((value) => (value >= 1e6 ? `${value / 1e6}M` : value >= 1e4 ? `${value / 1e3}k` : value));
    const options = (element, series, hasLegend) => ({
      ...size(element),
      series: [{ label: "Time", value: (self, seconds) => (seconds === null ? "–" : timeOfDay(seconds * 1000)) }, ...series],
      axes: [{ ...axis, values: (self, seconds) => seconds.map((each) => timeOfDay(each * 1000)), space: 80 }, { ...axis, values: numbers, size: 55 }],
      scales: { y: { range: (self, low, high) => [0, Math.max(high ?? 1, 1) * 1.05] } },
      legend: { show: hasLegend },
      cursor: { drag: { x: true, y: false } },
    });
    this.charts = [
      new uPlot(options(this.elements[0], lines, true), lag, this.elements[0]),
      new uPlot(options(this.elements[1], [...lines, ...dashes], false), rates, this.elements[1]),
    ];
  }

  #update() {
    if (!this.charts.length) return;
    const [lag, rates] = this.#data();
    this.charts[0].setData(lag);
    this.charts[1].setData(rates);
  }

  #chosenSeries() {
    return [...this.chosen].map((name) => this.series.get(name));
  }

  #data() {
    const chosen = this.#chosenSeries();
    const times = [...new Set(chosen.flatMap((each) => each.points.map(([seconds]) => seconds)))].sort((one, other) => one - other);
    const at = new Map(times.map((seconds, index) => [seconds, index]));
    const empty = () => new Array(times.length).fill(null);
    const lag = [times];
    const committed = [];
    const produced = [];
    for (const { points } of chosen) {
      const lags = empty();
      const reads = empty();
      const writes = empty();
      points.forEach(([seconds, value, offset, end], index) => {
        lags[at.get(seconds)] = value;
        if (!index) return;
        const [before, , offsetBefore, endBefore] = points[index - 1];
        const passed = seconds - before;
        reads[at.get(seconds)] = Math.max(0, offset - offsetBefore) / passed;
        if (end !== null && endBefore !== null) writes[at.get(seconds)] = Math.max(0, end - endBefore) / passed;
      });
      lag.push(lags);
      committed.push(reads);
      produced.push(writes);
    }
    return [lag, [times, ...committed, ...produced]];
  }
}

const key = (topic, partition) => JSON.stringify([topic, partition]);
const size = (element) => ({ width: Math.max(220, element.clientWidth), height: 220 });
