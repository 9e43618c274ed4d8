/** The last failures, each with the timeline of the states of both machines. */
import { byId, drawing, element, setText } from './dom.js'
import { clock, milliseconds } from './format.js'

const SIDES = ['source', 'target']
const LABEL = { source: 'client', target: 'backend' }
const KINDS = { fault: 'fault of the gateway', reset: 'reset', error: 'error of the backend', slow: 'slow' }
const WIDTH = 1000
const LANE = 26
const TICKS = 24

export class Failures {
  #holder = byId('failures-list')
  #note = element('p', { class: 'muted note' }, 'No exchange has failed since the start.')
  #list = element('ol', { class: 'failures' })
  #items = new Map()

  #isVisible = true

  constructor() {
    this.#holder.append(this.#list, this.#note)
    new IntersectionObserver(([entry]) => {
      this.#isVisible = entry.isIntersecting
    }).observe(this.#holder)
  }

  show(rows = {}, omitted = 0) {
    if (!this.#isVisible && this.#items.size > 0) return
    const sorted = Object.values(rows).sort((one, other) => other.endedMs - one.endedMs)
    const ids = new Set(sorted.map(({ id }) => id))
    for (const [id, item] of this.#items) {
      // What somebody reads stays.
      if (ids.has(id) || item.firstChild.open) continue
      item.remove()
      this.#items.delete(id)
    }
    let place = this.#list.firstChild
    for (const row of sorted) {
      const item = this.#items.get(row.id) ?? this.#item(row)
      if (item === place) place = place.nextSibling
      else this.#list.insertBefore(item, place)
    }
    const more = omitted > 0 ? `${omitted} older ones: sluice failures lists them.` : ''
    setText(this.#note, sorted.length === 0 ? 'No exchange has failed since the start.' : more)
  }

  /** The timeline of a failure is drawn when it is opened. */
  #item(row) {
    const what = row.code > 0 ? `${row.code}` : row.status > 0 ? `${row.status}` : row.kind
    const summary = element(
      'summary',
      {},
      element('span', { class: 'when' }, clock(row.endedMs)),
      element('span', { class: 'badge', 'data-tone': row.kind === 'slow' ? 'warn' : 'bad' }, what),
      element('span', { class: 'request' }, `${row.method} ${row.path}`),
      element(
        'span',
        { class: 'muted' },
        `${row.api === '' ? 'no API' : row.api} · ${milliseconds(row.durationUs / 1000)}`,
      ),
    )
    const details = element('details', {}, summary)
    details.addEventListener('toggle', () => {
      if (details.open && details.childElementCount === 1) details.append(...this.#body(row))
    })
    const item = element('li', {}, details)
    this.#items.set(row.id, item)
    return item
  }

  #body(row) {
    const facts = [
      ['Kind', KINDS[row.kind] ?? row.kind],
      ['Cause', row.cause === '' ? '–' : row.cause],
      ['Side', row.side === 'gateway' ? 'gateway' : LABEL[row.side]],
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
    element('span', {}, `0 to ${milliseconds(end / 1000)}`),
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
