/**
 * Places the states of a machine and routes its transitions. States and transitions come from the gateway's tables.
 * This file knows only where a state looks best, and places a state that it does not know in a row of its own.
 */

/** State -> step along the life of a message, and lane beside it. */
const PLACES = {
  CONNECTING: [0, 2],
  REQUEST_READY: [0, 1],
  REQUEST_HEAD: [1, 1],
  REQUEST_BODY: [2, 1],
  FILTERS_PENDING: [2, 2],
  UNWRITABLE: [2, 2],
  UNWRITABLE_HEAD: [2, 3],
  UNWRITABLE_BODY: [3, 3],
  REQUEST_DONE: [3, 1],
  EARLY_HEAD: [3, 0],
  EARLY_BODY: [4, 0],
  TUNNEL: [4, 2],
  TUNNEL_CLIENT_ENDED: [5, 2],
  TUNNEL_BACKEND_ENDED: [5, 3],
  RESPONSE_HEAD: [4, 1],
  RESPONSE_BODY: [5, 1],
  RESPONSE_DONE: [6, 1],
  CLOSING: [7, 1],
  CLOSED: [6, 3],
}
const LANES = 4
/** `chars`: of a line of a name. */
const WIDE = { along: 148, across: 90, width: 124, height: 60, round: 30, chars: 15, isUpright: false }
const UPRIGHT = { along: 94, across: 96, width: 80, height: 66, round: 18, chars: 10, isUpright: true }
const MARGIN = 8
const CORNER = 9
/** Bends of a route that are tried, in shares of a cell. */
const BENDS = [0, 0.3, -0.3, 0.5, -0.5, 0.75, -0.75, 1, -1, 1.3, -1.3, 1.7, -1.7]
const SAMPLES = 24
const APART = 7

/** Boxes by state, and the size of the drawing. */
export function place(states, isUpright) {
  const grid = isUpright ? UPRIGHT : WIDE
  let unknown = 0
  const boxes = new Map()
  for (const state of states) {
    const [step, lane] = PLACES[state] ?? [unknown++, LANES]
    const along = step * grid.along + MARGIN + (isUpright ? grid.height : grid.width) / 2
    const across = lane * grid.across + grid.round + (isUpright ? grid.width : grid.height) / 2
    const [x, y] = isUpright ? [across, along] : [along, across]
    boxes.set(state, { x, y, width: grid.width, height: grid.height })
  }
  const all = [...boxes.values()]
  const width = Math.max(...all.map(box => box.x + box.width / 2)) + (isUpright ? grid.round : MARGIN)
  const height = Math.max(...all.map(box => box.y + box.height / 2)) + (isUpright ? MARGIN : grid.round)
  return { boxes, width, height, grid }
}

/** The path of a transition, around the boxes of other states. */
export function route(from, to, plan, hasReverse) {
  const { boxes, width, height } = plan
  const [one, other] = [boxes.get(from), boxes.get(to)]
  const others = [...boxes].filter(([state]) => state !== from && state !== to).map(([, box]) => box)
  const costOf = points => {
    const hits = points.filter(point => others.some(box => isInside(point, box, 4))).length
    return hits + 3 * points.filter(({ x, y }) => x < 2 || y < 2 || x > width - 2 || y > height - 2).length
  }
  let best = null
  for (const path of candidates(one, other, plan, hasReverse ? APART : 0)) {
    const cost = costOf(path.points)
    if (best === null || cost < best.cost) best = { cost, path }
    if (cost === 0) break
  }
  return best.path.text ?? clipped(best.path, one, other)
}

/** Straight, then with more and more of a bend, then through a gap between steps, then around all states. */
function* candidates(one, other, { width, height, grid }, shift) {
  const length = Math.hypot(other.x - one.x, other.y - one.y)
  const normal = { x: -(other.y - one.y) / length, y: (other.x - one.x) / length }
  const moved = (point, by) => ({ x: point.x + normal.x * by, y: point.y + normal.y * by })
  const center = { x: (one.x + other.x) / 2, y: (one.y + other.y) / 2 }
  for (const bend of BENDS) {
    const [start, end] = [moved(one, shift), moved(other, shift)]
    const middle = moved(center, 2 * bend * grid.across + shift)
    const points = Array.from({ length: SAMPLES + 1 }, (_, at) => curve(start, middle, end, at / SAMPLES))
    yield { start, middle, end, points }
  }
  // Computed as if upright were wide: the axes change places at the end.
  const turned = box => (grid.isUpright ? { x: box.y, y: box.x, width: box.height, height: box.width } : box)
  const [from, to] = [turned(one), turned(other)]
  const gaps = [from, to].flatMap(({ x }) => [x - grid.along / 2, x + grid.along / 2])
  for (const gap of gaps) yield polyline(throughGap(from, to, gap), grid.isUpright)
  const far = (grid.isUpright ? width : height) - grid.round / 3
  for (const band of [grid.round / 3, far]) yield polyline(aroundAll(from, to, band), grid.isUpright)
}

/** Out of the side of a box, along the gap between two steps, and into the side of the other one. */
function throughGap(from, to, gap) {
  const leave = from.x + (Math.sign(gap - from.x) * from.width) / 2
  const enter = to.x + Math.sign(gap - to.x) * (to.width / 2 + 3)
  return [
    [leave, from.y],
    [gap, from.y],
    [gap, to.y],
    [enter, to.y],
  ]
}

/** Out of the first box to a band beside all states, along it, and into the last box. */
function aroundAll(from, to, band) {
  const side = Math.sign(band - from.y)
  const enter = to.y + side * (to.height / 2 + 3)
  return [
    [from.x, from.y + (side * from.height) / 2],
    [from.x, band],
    [to.x, band],
    [to.x, enter],
  ]
}

/** Lines with round corners; the points of the lines are those that must not meet a box. */
function polyline(corners, isUpright) {
  const text = corners.map(([x, y], at) => {
    if (at === 0) return `M${pair(x, y, isUpright)}`
    const [before, next] = [corners[at - 1], corners[at + 1]]
    if (next === undefined) return `L${pair(x, y, isUpright)}`
    const [into, out] = [towards([x, y], before), towards([x, y], next)]
    return `L${pair(...into, isUpright)}Q${pair(x, y, isUpright)} ${pair(...out, isUpright)}`
  })
  const points = corners.slice(1).flatMap(([x2, y2], at) => {
    const [x1, y1] = corners[at]
    return Array.from({ length: 13 }, (_, step) => [x1 + ((x2 - x1) * step) / 12, y1 + ((y2 - y1) * step) / 12])
  })
  return { text: text.join(''), points: points.map(([x, y]) => (isUpright ? { x: y, y: x } : { x, y })) }
}

function pair(x, y, isUpright) {
  return isUpright ? `${y.toFixed(1)} ${x.toFixed(1)}` : `${x.toFixed(1)} ${y.toFixed(1)}`
}

/** The point a little way from a corner. */
function towards([x, y], [toX, toY]) {
  const length = Math.hypot(toX - x, toY - y)
  const share = length === 0 ? 0 : Math.min(CORNER / length, 0.5)
  return [x + (toX - x) * share, y + (toY - y) * share]
}

/** Cuts a curve where it leaves its first box and enters its last one. */
function clipped({ start, middle, end }, one, other) {
  const steps = 80
  let first = 0
  while (first < steps && isInside(curve(start, middle, end, first / steps), one, 0)) first++
  let last = steps
  while (last > first && isInside(curve(start, middle, end, last / steps), other, 3)) last--
  const points = []
  for (let at = first; at <= last; at += 4) points.push(curve(start, middle, end, at / steps))
  points.push(curve(start, middle, end, last / steps))
  return points.map(({ x, y }, at) => `${at === 0 ? 'M' : 'L'}${x.toFixed(1)} ${y.toFixed(1)}`).join('')
}

function curve(start, middle, end, share) {
  const rest = 1 - share
  return {
    x: rest * rest * start.x + 2 * rest * share * middle.x + share * share * end.x,
    y: rest * rest * start.y + 2 * rest * share * middle.y + share * share * end.y,
  }
}

function isInside({ x, y }, box, room) {
  return Math.abs(x - box.x) < box.width / 2 + room && Math.abs(y - box.y) < box.height / 2 + room
}

/** The name of a state in lines of so many characters. */
export function linesOf(state, chars) {
  const lines = ['']
  for (const word of state.split('_')) {
    const line = lines.at(-1)
    const longer = line === '' ? word : `${line}_${word}`
    if (longer.length <= chars) lines[lines.length - 1] = longer
    else lines.push(word)
  }
  return lines
}
