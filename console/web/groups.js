// Groups: the list of all groups, searched, sorted and paged by the daemon.
import {
  failure, get, groupLink, html, listState, live, nothing, number, duration, pager, render, short, shown,
  sortHeader, stateChip, statusChip, throttled,
} from "./common.js";

const DEFAULT_SORT = "-status,-lag";
const ORDERS = [[DEFAULT_SORT, "worst first"], ["group", "by name"], ["-lag", "most lag"], ["-seconds", "longest behind"], ["-members", "most members"], ["-verdicts", "most verdicts"]];
const MIN_REFRESH_MS = 2_000;

export function show(main) {
  document.title = "Groups – Rollcall";
  let content = null;
  let error = null;
  let asked = 0;
  const state = listState(
    { search: "", state: "", type: "", status: "", verdicts: "", sort: DEFAULT_SORT, page: 1, limit: 50 },
    () => load(),
  );

  async function load() {
    const turn = (asked += 1);
    try {
      const found = await get("/api/groups", state.values);
      if (turn !== asked) return; // a later question is under way
      content = found;
      error = null;
    } catch (fault) {
      if (turn !== asked) return;
      error = fault;
    }
    draw();
  }

  const choose = (name) => (event) => state.change({ [name]: event.target.value, page: 1 });
  let typing = 0;
  const type = (event) => {
    clearTimeout(typing);
    const search = event.target.value;
    typing = setTimeout(() => state.change({ search, page: 1 }), 200);
  };

  function draw() {
    const { values } = state;
    render(
      html`
        <h1>Groups</h1>
        ${content ? summary(content, state) : nothing}
        <form class="filters" role="search" @submit=${(event) => event.preventDefault()}>
          <label>Search <input type="search" name="search" autocomplete="off" .value=${values.search} @input=${type}></label>
          ${select("State", "state", values.state, Object.entries(content?.states ?? {}), choose)}
          ${select("Status", "status", values.status, Object.entries(content?.statuses ?? {}).filter(([name]) => name), choose)}
          ${select("Type", "type", values.type, [["classic"], ["consumer"]], choose)}
          <label class="narrow">Order <select @change=${(event) => state.change({ sort: event.target.value, page: 1 })}>
            ${ORDERS.map(([sort, text]) => html`<option value=${sort} ?selected=${sort === values.sort}>${text}</option>`)}
          </select></label>
          <label class="check"><input type="checkbox" .checked=${values.verdicts === "true"}
            @change=${(event) => state.change({ verdicts: event.target.checked ? "true" : "", page: 1 })}> with verdicts</label>
        </form>
        ${error ? failure(error) : nothing}
        ${content ? table(content, state) : error ? nothing : html`<p class="quiet">Loading …</p>`}
      `,
      main,
    );
  }

  draw();
  const refresh = throttled(MIN_REFRESH_MS, load);
  live({}, { reset: refresh, groups: refresh, lag: refresh });
}

function select(label, name, value, options, choose) {
  return html`<label>${label} <select name=${name} @change=${choose(name)}>
    <option value="" ?selected=${value === ""}>any</option>
    ${options.map(([option, count]) => html`<option value=${option} ?selected=${option === value}>${option}${count === undefined ? "" : ` (${number(count)})`}</option>`)}
    ${value && !options.some(([option]) => option === value) ? html`<option value=${value} selected>${value}</option>` : nothing}
  </select></label>`;
}

function summary(content, state) {
  const bad = content.statuses.ERR ?? 0;
  const warn = content.statuses.WARN ?? 0;
  const tile = (value, label, className, link) =>
    html`<li class="tile ${className}"><a href=${link}><b>${number(value)}</b> ${label}</a></li>`;
  const moving = Object.entries(content.states)
    .filter(([name]) => name !== "Stable" && name !== "Empty")
    .map(([name]) => name);
  const rebalancing = moving.reduce((sum, name) => sum + content.states[name], 0);
  const plain = { search: "", state: "", type: "", status: "", verdicts: "", page: 1 };
  return html`<ul class="tiles">
    ${tile(content.groups_total, "groups", "", state.link(plain))}
    ${tile(content.states.Stable ?? 0, "stable", "", state.link({ ...plain, state: "Stable" }))}
    ${tile(rebalancing, "rebalancing", rebalancing ? "warn" : "", state.link({ ...plain, state: moving.join(",") }))}
    ${tile(content.states.Empty ?? 0, "empty", "", state.link({ ...plain, state: "Empty" }))}
    ${tile(bad, "lag ERR", bad ? "bad" : "", state.link({ ...plain, status: "ERR" }))}
    ${tile(warn, "lag WARN", warn ? "warn" : "", state.link({ ...plain, status: "WARN" }))}
    ${tile(content.with_verdicts, "with verdicts", content.with_verdicts ? "bad" : "", state.link({ ...plain, verdicts: "true" }))}
  </ul>
  ${content.ready ? nothing : html`<p class="failure" role="alert">The daemon is not ready: ${content.reason}</p>`}`;
}

function table(content, state) {
  const order = { sort: content.sort, link: state.link, change: state.change, ascendingFirst: ["group", "state", "type"] };
  if (!content.groups.length) {
    return html`<p>${content.groups_total ? "No group matches." : "There are no groups yet."}</p>`;
  }
  return html`
    <div class="scroll"><table class="cards">
      <caption>${number(content.matched)} ${content.matched === 1 ? "group" : "groups"}${content.matched === content.groups_total ? "" : ` of ${number(content.groups_total)}`}.
        Lag as of the last sample, every ${duration(content.interval_ms)}.</caption>
      <thead><tr>
        ${sortHeader("Group", "group", order)}
        ${sortHeader("State", "state", order)}
        ${sortHeader("Members", "members", order, "number")}
        ${sortHeader("Lag", "lag", order, "number")}
        ${sortHeader("Behind", "seconds", order, "number")}
        ${sortHeader("Status", "status", order)}
        ${sortHeader("Verdicts", "verdicts", order)}
        ${sortHeader("Type", "type", order)}
        ${sortHeader("Generation", "generation", order, "number")}
      </tr></thead>
      <tbody>${content.groups.map(row)}</tbody>
    </table></div>
    ${pager(content.page, content.pages, (page) => state.link({ page }), (page) => state.change({ page }))}`;
}

function row(group) {
  return html`<tr>
    <th scope="row"><a class="name" href=${groupLink(group.group)}>${shown(group.group)}</a></th>
    <td data-label="State">${stateChip(group.state)}</td>
    <td data-label="Members" class="number">${number(group.members)}</td>
    <td data-label="Lag" class="number" title=${number(group.lag)}>${short(group.lag)}</td>
    <td data-label="Behind" class="number">${duration(group.seconds_max === null ? null : group.seconds_max * 1000)}</td>
    <td data-label="Status">${statusChip(group.status)}</td>
    <td data-label="Verdicts">${group.verdicts.map((verdict) => html`<span class="chip bad">${verdict}</span> `)}</td>
    <td data-label="Type">${group.type}${group.protocol_type && group.protocol_type !== "consumer" ? ` (${group.protocol_type})` : ""}</td>
    <td data-label="Generation" class="number">${number(group.generation)}</td>
  </tr>`;
}
