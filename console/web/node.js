// Node: health, journal, snapshots, cleaner, purgatory, logs.
import {
  bytes, duration, failure, get, groupLink, html, instant, live, nothing, number, pager, render, short, sortHeader, throttled, topicLink,
} from "./common.js";

const REFRESH_MS = 2_000;

export function show(main) {
  document.title = "Node – Rollcall";
  let node = null;
  let logs = null;
  let purgatory = null;
  let error = null;
  let before = null;
  const asked = { logs: { sort: "-bytes", page: 1, limit: 20, search: "" }, purgatory: { kind: "", search: "", limit: 25 } };

  async function load() {
    try {
      const last = node;
      [node, logs, purgatory] = await Promise.all([get("/api/node"), get("/api/logs", asked.logs), get("/api/purgatory", asked.purgatory)]);
      if (last && last.started_at_ms === node.started_at_ms) before = last;
      error = null;
    } catch (fault) {
      error = fault;
    }
    draw();
  }

  function change(part, values) {
    Object.assign(asked[part], values);
    load();
  }

  let typing = 0;
  const type = (part) => (event) => {
    clearTimeout(typing);
    const search = event.target.value;
    typing = setTimeout(() => change(part, { search, ...(part === "logs" ? { page: 1 } : {}) }), 200);
  };

  const rate = (of, format = short) => {
    if (!before || node.at_ms <= before.at_ms) return "";
    return `, ${format(Math.max(0, ((of(node) - of(before)) * 1000) / (node.at_ms - before.at_ms)))}/s`;
  };

  function draw() {
    render(
      html`<h1>Node</h1>
        ${error ? failure(error) : nothing}
        ${node ? html`${about()}<div class="columns">${journal()}${snapshots()}${cleaner()}${loop()}</div>${purgatoryCard()}${logsCard()}` : error ? nothing : html`<p class="quiet">Loading …</p>`}`,
      main,
    );
  }

  const fact = (label, value) => html`<div><dt>${label}</dt><dd>${value}</dd></div>`;
  const card = (id, title, content) => html`<section class="card" aria-labelledby=${id}><h2 id=${id}>${title}</h2>${content}</section>`;

  function about() {
    const { health } = node;
    return card("about", html`Rollcall ${node.version} ${health.ready ? html`<span class="chip good">ready</span>` : html`<span class="chip bad">not ready: ${health.reason}</span>`}`, html`<dl class="facts">
      ${fact("Up for", duration(node.at_ms - node.started_at_ms))}
      ${fact("Cluster id", html`<span class="id">${node.cluster_id}</span>`)}
      ${fact("Node id", node.node_id)}
      ${fact("Connections of clients", number(node.connections))}
      ${fact("Partitions of groups", `${number(health.partitions.owned)} of ${number(health.partitions.total)}`)}
      ${fact("Records produced", `${short(node.data.records_appended)}${rate((each) => each.data.records_appended)}`)}
      ${fact("Fetched", bytes(node.data.bytes_fetched))}
      ${fact("Offsets committed", `${short(node.data.offsets_committed)}${rate((each) => each.data.offsets_committed)}`)}
      ${fact("History entries", number(node.data.events_written))}
    </dl>`);
  }

  function journal() {
    const { journal: each } = node;
    return card("journal", "Journal", html`
      ${each.failed ? html`<p class="failure" role="alert">${each.failed}</p>` : nothing}
      <dl class="facts">
      ${fact("Flushes (fsyncs)", `${short(each.flushes)}${rate((node) => node.journal.flushes)}`)}
      ${fact("Mean time of a flush", each.flushes ? duration((each.flush_seconds * 1000) / each.flushes) : "–")}
      ${fact("99 of 100 take at most", quantile(each))}
      ${fact("Stored", `${bytes(each.stored_bytes)}${rate((node) => node.journal.stored_bytes, bytes)}`)}
      ${fact("Queue", `${bytes(each.queue_bytes)} of ${bytes(each.queue_limit_bytes)}`)}
      ${fact("Checkpoints", `${number(each.checkpoints)} in ${duration(each.checkpoint_seconds * 1000)}`)}
      ${fact("Commits are answered after", each.synced ? "fsync" : "the write to the page cache")}
      ${fact("Failures", number(each.failures))}
      </dl>`);
  }

  function quantile({ flush_seconds_bounds: bounds, flush_seconds_counts: counts }) {
    const total = counts.reduce((sum, count) => sum + count, 0);
    let passed = 0;
    for (let at = 0; at < bounds.length; at += 1) {
      passed += counts[at];
      if (total && passed >= total * 0.99) return duration(bounds[at] * 1000);
    }
    return total ? `more than ${duration(bounds.at(-1) * 1000)}` : "–";
  }

  function snapshots() {
    const { snapshots: each } = node;
    return card("snapshots", "Snapshots", html`<dl class="facts">
      ${fact("Taken", number(each.taken))}${fact("Failed", number(each.failed))}${fact("Bytes", bytes(each.bytes))}
      ${fact("Time", duration(each.seconds * 1000))}${fact("One is taken after", bytes(each.after_bytes))}
      </dl>
      <div class="scroll"><table><caption>Partitions of ${each.topic} with the most to read at a start</caption>
      <thead><tr><th scope="col">Partition</th><th scope="col" class="number">Log since its snapshot</th><th scope="col" class="number">Snapshot</th></tr></thead>
      <tbody>${each.partitions.slice(0, 5).map((grown) => html`<tr><th scope="row">${grown.partition}</th><td class="number">${bytes(grown.log_bytes_since)}</td><td class="number">${bytes(grown.snapshot_bytes)}</td></tr>`)}</tbody></table></div>`);
  }

  function cleaner() {
    const { cleaner: each } = node;
    return card("cleaner", "Log cleaner", html`<dl class="facts">
      ${fact("Logs cleaned", number(each.runs))}${fact("Read", bytes(each.read_bytes))}${fact("Written", bytes(each.written_bytes))}
      ${fact("Time", duration(each.seconds * 1000))}${fact("Looked last", each.since_last_run_ms === null ? "–" : `${duration(each.since_last_run_ms)} ago`)}
      ${fact("Dirtiest log", `${Math.round(each.max_dirty_ratio * 100)} %`)}
      ${fact("Not cleanable", `${number(each.uncleanable_partitions)} partitions, ${bytes(each.uncleanable_bytes)}`)}
      </dl>`);
  }

  function loop() {
    const { loop: each } = node;
    const longest = each.longest_turn_seconds;
    const turns = Object.entries(each.long_turns)
      .filter(([, count]) => count)
      .sort(([left], [right]) => (longest[right] ?? 0) - (longest[left] ?? 0));
    return card("loop", "Event loop", html`<dl class="facts">
      ${fact("Longest delay", duration(each.lag_seconds_max * 1000))}${fact("Stalls of a second", number(each.stalls))}
      ${fact("Internal failures", number(each.internal_failures))}
      </dl>
      ${turns.length ? html`<div class="scroll"><table><caption>Turns of more than 5 ms, by kind</caption><thead><tr><th scope="col">Kind</th><th scope="col" class="number">Turns</th><th scope="col" class="number">Longest, last minute</th></tr></thead>
        <tbody>${turns.map(([kind, count]) => html`<tr><th scope="row">${kind}</th><td class="number">${number(count)}</td><td class="number">${duration((longest[kind] ?? 0) * 1000)}</td></tr>`)}</tbody></table></div>` : html`<p class="quiet">No turn took more than 5 ms.</p>`}`);
  }

  function purgatoryCard() {
    const kinds = Object.entries(purgatory.kinds);
    return card("purgatory", "Purgatory", html`
      <p class="quiet">What waits for members, or for records. The first due first.</p>
      <div class="buttons" role="group" aria-label="Kind of operation">
        <button type="button" aria-pressed=${asked.purgatory.kind === ""} @click=${() => change("purgatory", { kind: "" })}>all (${number(purgatory.operations_total)})</button>
        ${kinds.map(([kind, count]) => html`<button type="button" aria-pressed=${asked.purgatory.kind === kind} @click=${() => change("purgatory", { kind })}>${kind} (${number(count)})</button>`)}
        <label>Key <input type="search" autocomplete="off" @input=${type("purgatory")}></label>
      </div>
      <div class="scroll"><table class="cards">
        <caption>${number(purgatory.operations.length)} of ${number(purgatory.matched)} operations</caption>
        <thead><tr><th scope="col">Operation</th><th scope="col" class="number">Due in</th><th scope="col">Watched under</th></tr></thead>
        <tbody>${purgatory.operations.map((each) => html`<tr><th scope="row">${each.kind}</th><td data-label="Due in" class="number">${each.due_in_ms <= 0 ? "now" : duration(each.due_in_ms)}</td>
          <td data-label="Watched under" class="name wide">${each.keys.filter((key) => Array.isArray(key)).map((key) => watched(each.kind, key))}</td></tr>`)}</tbody>
      </table></div>`);
  }

  function watched(kind, key) {
    if (kind === "DelayedFetch") return html`<div><a href=${topicLink(key[0])}>${key[0]}</a> ${key[1]}</div>`;
    return html`<div>${key[0]} <a href=${groupLink(key[1] ?? "")}>${key[1]}</a> <span class="id">${key.slice(2).join(" ")}</span></div>`;
  }

  function logsCard() {
    const order = {
      sort: logs.sort,
      link: () => "/console/node",
      change: (values) => change("logs", values),
      ascendingFirst: ["topic"],
    };
    return card("logs", "Logs", html`
      <div class="filters"><label>Search <input type="search" autocomplete="off" @input=${type("logs")}></label></div>
      <div class="scroll"><table class="cards">
        <caption>${number(logs.matched)} of ${number(logs.logs_total)} logs; all have ${number(logs.segments_total)} segments and ${bytes(logs.bytes_total)}. As of ${instant(node.at_ms)}.</caption>
        <thead><tr>${sortHeader("Log", "topic", order)}${sortHeader("Segments", "segments", order, "number")}${sortHeader("Size", "bytes", order, "number")}
          ${sortHeader("Offsets", "records", order, "number")}<th scope="col" class="number">Start</th><th scope="col" class="number">End</th><th scope="col">Cleanup</th></tr></thead>
        <tbody>${logs.logs.map((each) => html`<tr>
          <th scope="row" class="name"><a href=${topicLink(each.topic)}>${each.topic}</a> ${each.partition}</th>
          <td data-label="Segments" class="number">${number(each.segments)}</td><td data-label="Size" class="number">${bytes(each.bytes)}</td>
          <td data-label="Offsets" class="number">${short(each.high_watermark - each.log_start_offset)}</td>
          <td data-label="Start" class="number">${number(each.log_start_offset)}</td><td data-label="End" class="number">${number(each.high_watermark)}</td>
          <td data-label="Cleanup">${each.cleanup}</td></tr>`)}</tbody>
      </table></div>
      ${pager(logs.page, logs.pages, () => "/console/node", (page) => change("logs", { page }))}`);
  }

  draw();
  const refresh = throttled(REFRESH_MS, load);
  live({}, { reset: refresh, lag: refresh });
  setInterval(() => {
    if (!document.hidden) refresh();
  }, 5_000);
}
