/** Draws a protocol machine as SVG from its description, and keeps the numbers of connections in its states. */
import { drawing, setAttribute, setText } from './dom.js'
import { count } from './format.js'
import { linesOf, place, route } from './layout.js'

/** Below this width of the page the machine runs downwards. */
const UPRIGHT_BELOW = 900
/** These events lead from nearly every state to the end: they are drawn while a state is chosen. */
const HANG_UP = ['CLOSE', 'SOCKET_CLOSED']
const LINE_HEIGHT = 12.5
const ARROW = 9
const ARROWS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }

export class Diagram {
  #side
  #machine
  #holder
  #detail
  #nodes = new Map()
  #edges = []
  #plan = null
  #counts = {}
  #chosen = ''
  #isUpright = null

  constructor(side, machine, holder, detail) {
    this.#side = side
    this.#machine = machine
    this.#holder = holder
    this.#detail = detail
    new ResizeObserver(() => this.#fit()).observe(holder)
    this.#fit()
  }

  /** Connections by state; a state that is missing has none. */
  show(counts) {
    this.#counts = counts
    for (const [state, { group, number }] of this.#nodes) {
      const connections = counts[state] ?? 0
      setText(number, count(connections))
      setAttribute(group, 'data-level', levelOf(connections))
      setAttribute(group, 'aria-label', `${state}: ${connections} ${connections === 1 ? 'connection' : 'connections'}`)
    }
  }

  #fit() {
    const isUpright = this.#holder.clientWidth < UPRIGHT_BELOW
    if (this.#isUpright === isUpright) return
    this.#isUpright = isUpright
    this.#draw()
    this.show(this.#counts)
  }

  #draw() {
    const { states, transitions } = this.#machine
    const plan = place(states, this.#isUpright)
    this.#plan = plan
    const markers = ['', '-near'].map(kind => this.#arrow(kind))
    const svg = drawing(
      'svg',
      {
        viewBox: `0 0 ${plan.width} ${plan.height}`,
        role: 'group',
        'aria-label': `States of ${this.#side} connections`,
      },
      drawing('defs', {}, ...markers),
    )
    this.#edges = transitions.filter(({ from, to }) => from !== to).map(edge => this.#edge(edge, plan))
    svg.append(...this.#edges.map(({ path }) => path))
    this.#nodes = new Map(states.map(state => [state, this.#node(state, plan.boxes.get(state))]))
    svg.append(...[...this.#nodes.values()].map(({ group }) => group))
    this.#holder.classList.toggle('upright', this.#isUpright)
    this.#holder.replaceChildren(svg)
    this.#setEntry(this.#chosen === '' ? states[0] : this.#chosen)
    this.#choose(this.#chosen)
  }

  /** `kind`: behind the name of the marker. */
  #arrow(kind) {
    const size = { viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: ARROW, markerHeight: ARROW }
    return drawing(
      'marker',
      { id: `arrow-${this.#side}${kind}`, ...size, markerUnits: 'userSpaceOnUse', orient: 'auto' },
      drawing('path', { d: 'M0 0L8 4L0 8z', class: `arrow${kind}` }),
    )
  }

  #edge({ from, to, events }, plan) {
    const isReversed = this.#machine.transitions.some(other => other.from === to && other.to === from)
    const isHangUp = events.every(event => HANG_UP.includes(event))
    const path = drawing(
      'path',
      {
        d: route(from, to, plan, isReversed),
        class: isHangUp ? 'edge hang-up' : 'edge',
        'data-from': from,
        'data-to': to,
        'marker-end': `url(#arrow-${this.#side})`,
        'aria-hidden': 'true',
      },
      drawing('title', {}, `${from} → ${to}: ${events.join(', ')}`),
    )
    return { path, from, to }
  }

  #node(state, { x, y, width, height }) {
    const lines = linesOf(state, this.#plan.grid.chars)
    const top = y - height / 2
    const number = drawing('text', { x, y: top + height - 8, class: 'number' }, '0')
    const names = lines.map((line, at) => drawing('text', { x, y: top + 14 + at * LINE_HEIGHT, class: 'name' }, line))
    const loops = this.#machine.transitions.find(({ from, to }) => from === state && to === state)
    const loop =
      loops === undefined
        ? []
        : [
            drawing(
              'text',
              { x: x + width / 2 - 9, y: top + height - 7, class: 'loop' },
              '↻',
              drawing('title', {}, `stays: ${loops.events.join(', ')}`),
            ),
          ]
    const box = drawing('rect', { x: x - width / 2, y: top, width, height, rx: 8 })
    const group = drawing(
      'g',
      { class: 'state', role: 'button', tabindex: -1, 'data-state': state, 'aria-pressed': 'false' },
      ...[box, ...names, number, ...loop],
    )
    group.addEventListener('focus', () => this.#highlight(state))
    group.addEventListener('blur', () => this.#highlight(this.#chosen))
    group.addEventListener('pointerenter', () => this.#highlight(state))
    group.addEventListener('pointerleave', () => this.#highlight(this.#chosen))
    group.addEventListener('click', () => this.#choose(this.#chosen === state ? '' : state))
    group.addEventListener('keydown', event => this.#key(event, state))
    return { group, number }
  }

  #key(event, state) {
    if (event.key === 'Enter' || event.key === ' ') this.#choose(this.#chosen === state ? '' : state)
    else if (event.key === 'Escape') this.#choose('')
    else if (event.key in ARROWS) this.#move(state, ARROWS[event.key])
    else return
    event.preventDefault()
  }

  /** Moves the focus to the nearest state in a direction. */
  #move(state, [towardsX, towardsY]) {
    const from = this.#plan.boxes.get(state)
    let nearest = null
    for (const [name, box] of this.#plan.boxes) {
      const [x, y] = [box.x - from.x, box.y - from.y]
      const ahead = x * towardsX + y * towardsY
      const aside = Math.abs(x * towardsY) + Math.abs(y * towardsX)
      const distance = ahead + 2 * aside
      if (ahead > 1 && aside <= 2 * ahead && (nearest === null || distance < nearest.distance))
        nearest = { name, distance }
    }
    if (nearest === null) return
    this.#setEntry(nearest.name)
    this.#nodes.get(nearest.name).group.focus()
  }

  /** One state of a machine is in the order of the Tab key. */
  #setEntry(entry) {
    for (const [state, { group }] of this.#nodes) setAttribute(group, 'tabindex', state === entry ? 0 : -1)
  }

  #choose(state) {
    this.#chosen = state
    for (const [name, { group }] of this.#nodes) setAttribute(group, 'aria-pressed', name === state)
    if (state !== '') this.#setEntry(state)
    this.#highlight(state)
    setText(this.#detail, state === '' ? '' : this.#describe(state))
  }

  #highlight(state) {
    const near = new Set([state])
    for (const { path, from, to } of this.#edges) {
      const isHangUp = path.classList.contains('hang-up')
      const isNear = state !== '' && (from === state || (to === state && !isHangUp))
      path.classList.toggle('near', isNear)
      setAttribute(path, 'marker-end', `url(#arrow-${this.#side}${isNear ? '-near' : ''})`)
      if (isNear) near.add(from).add(to)
    }
    this.#holder.classList.toggle('has-near', state !== '')
    for (const [name, { group }] of this.#nodes) group.classList.toggle('near', near.has(name))
  }

  #describe(state) {
    const leads = this.#machine.transitions.filter(({ from }) => from === state)
    const parts = leads.map(({ to, events }) => `${events.join(' or ')} → ${to === state ? 'stays' : to}`)
    return parts.length === 0 ? `${state} is the end.` : `${state}: ${parts.join('; ')}.`
  }
}

/** Shade of a box. */
function levelOf(connections) {
  return connections === 0 ? 0 : Math.min(4, 1 + Math.floor(Math.log10(connections)))
}
