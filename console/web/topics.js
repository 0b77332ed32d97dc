// Topics: all of them, and one with its partitions.
import {
  bytes, failure, follow, get, html, listState, live, nothing, number, pager, render, short, shown, sortHeader, throttled, timeElement, topicLink,
} from "./common.js";

const REFRESH_MS = 5_000;

export function showAll(main) {
  document.title = "Topics – Rollcall";
  let content = null;
  let error = null;
  let asked = 0;
  const state = listState({ search: "", internal: "", sort: "topic", page: 1, limit: 50 }, () => load());

  async function load() {
    const turn = (asked += 1);
    try {
      const found = await get("/api/topics", state.values);
      if (turn !== asked) return;
      content = found;
      error = null;
    } catch (fault) {
      error = fault;
    }
    draw();
  }

  let typing = 0;
  const type = (event) => {
    clearTimeout(typing);
    const search = event.target.value;
    typing = setTimeout(() => state.change({ search, page: 1 }), 200);
  };

  function draw() {
    render(
      html`<h1>Topics</h1>
        <form class="filters" role="search" @submit=${(event) => event.preventDefault()}>
          <label>Search <input type="search" autocomplete="off" .value=${state.values.search} @input=${type}></label>
          <label class="check"><input type="checkbox" .checked=${state.values.internal !== "false"}
            @change=${(event) => state.change({ internal: event.target.checked ? "" : "false", page: 1 })}> internal ones too</label>
        </form>
        ${error ? failure(error) : nothing}
        ${content ? table() : error ? nothing : html`<p class="quiet">Loading …</p>`}`,
      main,
    );
  }

  function table() {
    const order = { sort: content.sort, link: state.link, change: state.change, ascendingFirst: ["topic"] };
    return html`<div class="scroll"><table class="cards">
      <caption>${number(content.matched)} of ${number(content.topics_total)} topics; all have ${number(content.partitions_total)} partitions and ${bytes(content.bytes_total)}.</caption>
      <thead><tr>${sortHeader("Topic", "topic", order)}${sortHeader("Partitions", "partitions", order, "number")}
        ${sortHeader("Offsets", "records", order, "number")}${sortHeader("Size", "bytes", order, "number")}<th scope="col">Notes</th></tr></thead>
      <tbody>${content.topics.map((each) => html`<tr>
        <th scope="row" class="name"><a href=${topicLink(each.topic)}>${shown(each.topic)}</a></th>
        <td data-label="Partitions" class="number">${number(each.partitions)}</td>
        <td data-label="Offsets" class="number" title=${number(each.records)}>${short(each.records)}</td>
        <td data-label="Size" class="number">${bytes(each.bytes)}</td>
        <td data-label="Notes">${each.is_internal ? html`<span class="chip">internal</span>` : nothing}
          ${each.offline ? html`<span class="chip bad">${number(each.offline)} offline</span>` : nothing}</td>
      </tr>`)}</tbody></table></div>
      ${pager(content.page, content.pages, (page) => state.link({ page }), (page) => state.change({ page }))}`;
  }

  draw();
  const refresh = throttled(REFRESH_MS, load);
  live({}, { reset: refresh, lag: refresh });
}

export function showOne(main, name) {
  document.title = `${name} – Rollcall`;
  let content = null;
  let log = null;
  let error = null;
  const state = listState({ page: 1, limit: 100, partition: "" }, () => load());

  async function load() {
    try {
      const { page, limit, partition } = state.values;
      content = await get("/api/topic", { topic: name, page, limit });
      log = partition === "" ? null : await get("/api/log", { topic: name, partition });
      error = null;
    } catch (fault) {
      error = fault;
    }
    draw();
  }

  function draw() {
    render(
      html`<p class="quiet"><a href="/console/topics">All topics</a></p>
        <h1>${shown(name)}</h1>
        ${error ? failure(error) : nothing}
        ${content ? table() : error ? nothing : html`<p class="quiet">Loading …</p>`}`,
      main,
    );
  }

  function table() {
    const configs = Object.entries(content.configs);
    return html`<p>${content.is_internal ? html`<span class="chip">internal</span>` : nothing}
        <span class="chip">${number(content.partitions_total)} partitions</span> <span class="quiet id">${content.topic_id}</span></p>
      ${configs.length ? html`<section class="card"><h2>Own configs</h2><dl class="facts">${configs.map(([key, value]) => html`<div><dt>${key}</dt><dd>${value}</dd></div>`)}</dl></section>` : nothing}
      <div class="scroll"><table class="cards">
        <caption>Partitions; sizes in bytes of record batches.</caption>
        <thead><tr><th scope="col">Partition</th><th scope="col" class="number">Log start</th><th scope="col" class="number">High watermark</th>
          <th scope="col" class="number">Log end</th><th scope="col" class="number">Leader epoch</th><th scope="col" class="number">Size</th></tr></thead>
        <tbody>${content.partitions.map((each) => html`<tr>
          <th scope="row"><a href=${state.link({ partition: `${each.partition}` })} @click=${(event) => follow(event, () => state.change({ partition: `${each.partition}` }))}>${each.partition}</a> ${each.offline ? html`<span class="chip bad">offline</span>` : nothing}</th>
          <td data-label="Log start" class="number">${number(each.log_start_offset)}</td>
          <td data-label="High watermark" class="number">${number(each.high_watermark)}</td>
          <td data-label="Log end" class="number">${number(each.log_end_offset)}</td>
          <td data-label="Leader epoch" class="number">${number(each.leader_epoch)}</td>
          <td data-label="Size" class="number">${bytes(each.bytes)}</td></tr>`)}</tbody>
      </table></div>
      ${pager(content.page, content.pages, (page) => state.link({ page }), (page) => state.change({ page }))}
      ${log ? segments() : nothing}`;
  }

  function segments() {
    const fact = (label, value) => html`<div><dt>${label}</dt><dd>${value}</dd></div>`;
    return html`<section class="card" aria-labelledby="log-title"><h2 id="log-title">Log of partition ${log.partition}</h2>
      <dl class="facts">${fact("Cleanup", log.cleanup)}${fact("On disk up to offset", number(log.recovery_point))}${fact("Segments", number(log.segments_total))}</dl>
      <div class="scroll"><table>
        <caption>${number(log.segments.length)} of ${number(log.segments_total)} segments, the newest first</caption>
        <thead><tr><th scope="col" class="number">First offset</th><th scope="col" class="number">End</th><th scope="col" class="number">Size</th><th scope="col">Newest record</th></tr></thead>
        <tbody>${log.segments.toReversed().map((each) => html`<tr>
          <th scope="row" class="number">${number(each.base_offset)}</th>
          <td class="number">${number(each.next_offset)}</td>
          <td class="number">${bytes(each.bytes)}</td>
          <td>${timeElement(each.max_timestamp_ms)}</td></tr>`)}</tbody>
      </table></div></section>`;
  }

  draw();
  const refresh = throttled(REFRESH_MS, load);
  live({}, { reset: refresh, lag: refresh });
}
