/** The last failures, each with the timeline of the states of both machines. */
import { messageOf } from './codes.js'
import { byId, drawing, element, setText } from './dom.js'
import { clock, count, duration, milliseconds } from './format.js'

const SIDES = ['source', 'target']
const LABEL = { source: 'client', target: 'backend' }
const KINDS = { fault: 'fault of the gateway', reset: 'reset', error: 'error of the backend', slow: 'slow exchange' }
const NONE = 'No exchange has failed since the start.'
const LISTING = 'sluice failures lists'
const WIDTH = 1000
const LANE = 26
const TICKS = 24

export class Failures {
  #holder = byId('failures-list')
  #filter = element('input', { type: 'search', autocomplete: 'off', spellcheck: 'false', maxlength: 200 })
  #note = element('p', { class: 'muted note' }, NONE)
  #list = element('ol', { class: 'failures' })
  #items = new Map()
  #rows = {}
  #omitted = 0
  #isVisible = true

  constructor() {
    const field = element('p', {}, element('label', { class: 'filter' }, 'Filter failures ', this.#filter))
    this.#holder.append(field, this.#list, this.#note)
    this.#filter.addEventListener('input', () => this.#render())
    new IntersectionObserver(([entry]) => {
      this.#isVisible = entry.isIntersecting
      if (this.#isVisible) this.#render()
    }).observe(this.#holder)
  }

  show(rows = {}, omitted = 0) {
    this.#rows = rows
    this.#omitted = omitted
    if (this.#isVisible || this.#items.size === 0) this.#render()
  }

  #render() {
    const all = Object.values(this.#rows).sort((one, other) => other.endedMs - one.endedMs)
    const wanted = this.#filter.value.trim().toLowerCase()
    const found = wanted === '' ? all : all.filter(row => textOf(row).includes(wanted))
    // The row that somebody reads does not move.
    if ([...this.#items.values()].some(item => item.firstChild.open)) {
      const newer = found.filter(row => !this.#items.has(keyOf(row))).length
      return setText(this.#note, `The list stands still while a timeline is open; ${count(newer)} are newer.`)
    }
    const keys = new Set(found.map(keyOf))
    for (const [key, item] of this.#items) {
      if (keys.has(key)) continue
      item.remove()
      this.#items.delete(key)
    }
    let place = this.#list.firstChild
    for (const row of found) {
      const item = this.#items.get(keyOf(row)) ?? this.#item(row)
      if (item === place) place = place.nextSibling
      else this.#list.insertBefore(item, place)
    }
    const more = this.#omitted > 0 ? `The newest of each sort; ${LISTING} ${count(this.#omitted)} others.` : ''
    setText(this.#note, all.length === 0 ? NONE : found.length === 0 ? 'No failure matches.' : more)
  }

  /** The timeline of a failure is drawn when it is opened. */
  #item(row) {
    const summary = element(
      'summary',
      {},
      element('span', { class: 'when' }, clock(row.endedMs)),
      element('span', { class: 'badge', 'data-tone': row.kind === 'slow' ? 'warn' : 'bad' }, whatOf(row)),
      element('span', { class: 'request' }, `${row.method} ${row.path}`),
      ...[reasonOf(row), apiOf(row), duration(row.durationUs)].map(text => element('span', { class: 'muted' }, text)),
    )
    const details = element('details', {}, summary)
    details.addEventListener('toggle', () => {
      if (details.open && details.childElementCount === 1) details.append(...this.#body(row))
      if (!details.open) this.#render()
    })
    const item = element('li', {}, details)
    this.#items.set(keyOf(row), item)
    return item
  }

  #body(row) {
    const facts = [
      ['Kind', KINDS[row.kind] ?? row.kind],
      ['Cause', row.cause === '' ? '–' : row.cause],
      ['Side', row.side === 'gateway' ? 'gateway' : LABEL[row.side]],
      ['Code', row.code === 0 ? '–' : `${row.code}: sluice why ${row.code} explains it`],
      ['Status', row.status === 0 ? 'no response' : row.status],
      ['Client', `${row.client} (${row.source})`],
      ['Backend', row.backend === '' ? '–' : `${row.backend} (${row.target})`],
      ['Correlation id', row.correlationId === '' ? '–' : row.correlationId],
    ]
    const list = element('dl', { class: 'facts' })
    for (const [name, value] of facts)
      list.append(element('div', {}, element('dt', {}, name), element('dd', {}, String(value))))
    const steps = stepsOf(row.steps)
    return [list, timeline(steps, row.durationUs), stepTable(steps, row.dropped)]
  }
}

/** A reactor that replaces a dead one counts from the beginning. */
function keyOf({ id, endedMs }) {
  return `${id} ${endedMs}`
}

function whatOf({ code, status, kind }) {
  return code > 0 ? `${code}` : status > 0 && kind !== 'slow' ? `${status}` : kind
}

function reasonOf({ kind, errorBase }) {
  return messageOf(errorBase) || KINDS[kind] || kind
}

function apiOf({ api, apiVersion }) {
  return api === '' ? 'no API' : `${api}:${apiVersion}`
}

/** Returns the text that the filter searches. */
function textOf(row) {
  const shown = [whatOf(row), reasonOf(row), apiOf(row), `${row.method} ${row.path}`, row.status]
  return [...shown, row.correlationId, row.cause, row.client, row.backend].join('\n').toLowerCase()
}

/** Steps as the gateway sends them: `us side event state`, a line each. */
function stepsOf(text) {
  return text === ''
    ? []
    : text.split('\n').map(line => {
        const [us, side, event, state] = line.split(' ')
        return { us: Number(us), side, event, state }
      })
}

/** A lane per side; a bar from each state to the next one. The table below has the same numbers. */
function timeline(steps, durationUs) {
  const end = Math.max(durationUs, 1, ...steps.map(({ us }) => us))
  const svg = drawing('svg', {
    viewBox: `0 0 ${WIDTH} ${2 * LANE + TICKS}`,
    class: 'timeline',
    preserveAspectRatio: 'none',
    'aria-hidden': 'true',
  })
  SIDES.forEach((side, lane) => {
    const own = steps.filter(step => step.side === side)
    own.forEach(({ us, state }, at) => {
      const until = own[at + 1]?.us ?? (state === 'CLOSED' || state === 'REQUEST_READY' ? us : end)
      const [x, width] = [(us / end) * WIDTH, Math.max(2, ((until - us) / end) * WIDTH)]
      const bar = { x, y: lane * LANE + 3, width, height: LANE - 6, class: `bar ${toneOf(state)}` }
      svg.append(
        drawing('rect', bar, drawing('title', {}, `${LABEL[side]}: ${state}, ${milliseconds((until - us) / 1000)}`)),
      )
    })
  })
  const labels = element(
    'div',
    { class: 'lanes', 'aria-hidden': 'true' },
    element('span', {}, 'client'),
    element('span', {}, 'backend'),
    element('span', {}, duration(end)),
  )
  return element('div', { class: 'timeline-box' }, labels, svg)
}

function toneOf(state) {
  if (state.startsWith('RESPONSE')) return 'of-response'
  if (state === 'REQUEST_DONE' || state === 'FILTERS_PENDING' || state === 'CONNECTING') return 'of-wait'
  if (state.startsWith('REQUEST')) return 'of-request'
  return state === 'CLOSING' || state === 'CLOSED' ? 'of-end' : 'of-other'
}

function stepTable(steps, dropped) {
  const head = ['After', 'Side', 'Event', 'State'].map(text => element('th', { scope: 'col' }, text))
  const rows = steps.map(({ us, side, event, state }) =>
    element(
      'tr',
      {},
      element('th', { scope: 'row' }, milliseconds(us / 1000)),
      ...[LABEL[side] ?? side, event, state].map(text => element('td', {}, text)),
    ),
  )
  const table = element('table', {}, element('thead', {}, element('tr', {}, ...head)), element('tbody', {}, ...rows))
  const note =
    dropped > 0 ? [element('p', { class: 'muted' }, `${dropped} steps before the last one were not kept.`)] : []
  return element(
    'div',
    { class: 'scroll', role: 'region', 'aria-label': 'Steps of the exchange', tabindex: 0 },
    table,
    ...note,
  )
}
