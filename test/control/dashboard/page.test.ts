/** Computations of the page: rates, quantiles, units, and the drawing of the machines. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { METRIC } from '../../../src/observe/metrics.ts'
import { describeMachines } from '../../../src/control/dashboard/machines.ts'
import { bytes, clock, duration, milliseconds, span } from '../../../src/control/dashboard/page/format.js'
import { linesOf, place, route } from '../../../src/control/dashboard/page/layout.js'
import { CACHES, DATABASES } from '../../../src/control/dashboard/page/pools.js'
import { History, perSecond, POINTS, quantile } from '../../../src/control/dashboard/page/rates.js'

const QUANTILES: readonly (readonly [share: number, counts: readonly number[], expected: number | null])[] = [
  [0.5, [0, 0, 0, 0], null],
  [0.5, [10, 0, 0, 0], 0.5],
  [1, [10, 0, 0, 0], 1],
  [0.5, [0, 10, 0, 0], 1.5],
  [0.99, [99, 0, 1, 0], 1],
  [0.995, [99, 0, 1, 0], 3],
  // Beyond the last bound nothing is known but the bound.
  [0.99, [1, 0, 0, 99], 4],
]
test('quantiles are interpolated within their bucket', () => {
  for (const [share, counts, expected] of QUANTILES) {
    assert.equal(quantile(share, counts, [1, 2, 4]), expected, `${share} of ${counts.join()}`)
  }
})

test('a rate of a counter that was reset, or without time, is unknown', () => {
  assert.equal(perSecond(30, 10, 2), 10)
  assert.equal(perSecond(5, 10, 2), null)
  assert.equal(perSecond(30, 10, 0), null)
})

test('a history holds as many points as a chart shows', () => {
  const history = new History(1)
  assert.equal(history.highest(0), null)
  for (let at = 0; at < POINTS + 10; at++) history.add(at, [at === POINTS ? 999 : null])
  assert.equal(history.columns[0]!.length, POINTS)
  assert.equal(history.highest(0), 999)
  assert.equal(history.last(0), null)
})

test('units fit the size of a value', () => {
  assert.deepEqual([0, 1023, 1024, 5 * 1024 ** 3, Number.NaN].map(bytes), ['0 B', '1,023 B', '1 KiB', '5 GiB', '–'])
  assert.deepEqual([0, 0.25, 12.34, 999, 2500, 61_000, null].map(milliseconds), [
    ...['0 ms', '250 µs', '12.3 ms', '999 ms', '2.5 s', '1 min 1 s', '–'],
  ])
  assert.deepEqual([5, 3700, 90_000].map(span), ['5 s', '1 h 1 min', '1 d 1 h'])
  assert.deepEqual([new Date(2026, 0, 1, 0, 0, 5), new Date(2026, 0, 1, 23, 59)].map(Number).map(clock), [
    ...['00:00:05', '23:59:00'],
  ])
  assert.deepEqual([0, 79, 250].map(duration), ['< 0.1 ms', '< 0.1 ms', '250 µs'])
})

/** Points of a path that holds M, L and Q with absolute coordinates. */
function pointsOf(path: string): readonly (readonly [x: number, y: number])[] {
  return [...path.matchAll(/(-?[\d.]+) (-?[\d.]+)/g)].map(([, x, y]) => [Number(x), Number(y)])
}

for (const isUpright of [false, true]) {
  test(`states do not overlap, and transitions stay in the drawing, ${isUpright ? 'upright' : 'wide'}`, () => {
    for (const { states, transitions } of Object.values(describeMachines())) {
      const plan = place(states, isUpright)
      const boxes = [...plan.boxes]
      for (const [one, a] of boxes) {
        for (const [other, b] of boxes) {
          const areApart = Math.abs(a.x - b.x) >= a.width || Math.abs(a.y - b.y) >= a.height
          assert.ok(one === other || areApart, `${one} overlaps ${other}`)
        }
      }
      for (const { from, to } of transitions) {
        if (from === to) continue
        for (const [x, y] of pointsOf(route(from, to, plan, false))) {
          assert.ok(x >= 0 && y >= 0 && x <= plan.width && y <= plan.height, `${from} to ${to} leaves the drawing`)
        }
      }
    }
  })
}

test('transitions of messages pass through no other state', () => {
  for (const { states, transitions } of Object.values(describeMachines())) {
    const plan = place(states, false)
    for (const { from, to, events } of transitions) {
      if (from === to || events.every(event => event === 'CLOSE' || event === 'SOCKET_CLOSED')) continue
      for (const [x, y] of pointsOf(route(from, to, plan, false))) {
        const hit = [...plan.boxes].find(([state, box]) => {
          const isInside = Math.abs(x - box.x) < box.width / 2 - 1 && Math.abs(y - box.y) < box.height / 2 - 1
          return state !== from && state !== to && isInside
        })
        assert.equal(hit?.[0], undefined, `${from} to ${to}`)
      }
    }
  }
})

test('a state that the page does not know is drawn too', () => {
  const plan = place(['REQUEST_READY', 'NEW_STATE', 'NEWER_STATE'], false)
  assert.equal(plan.boxes.size, 3)
  assert.ok(plan.boxes.get('NEW_STATE')!.y > plan.boxes.get('REQUEST_READY')!.y)
})

test('every cache and database of the page has counts', () => {
  for (const of of Object.values(CACHES)) assert.ok(`${of}Entries` in METRIC, of)
  for (const of of Object.values(DATABASES)) {
    for (const figure of ['Used', 'Limit', 'Highest']) assert.ok(`${of}${figure}` in METRIC, of + figure)
  }
})

test('a long name of a state takes several lines', () => {
  assert.deepEqual(linesOf('TUNNEL_BACKEND_ENDED', 15), ['TUNNEL_BACKEND', 'ENDED'])
  assert.deepEqual(linesOf('TUNNEL_BACKEND_ENDED', 10), ['TUNNEL', 'BACKEND', 'ENDED'])
})

/** Colours of a theme by their names: the first block of the style sheet is light, the last one dark. */
function themes(): readonly ReadonlyMap<string, string>[] {
  const css = readFileSync('src/control/dashboard/page/dashboard.css', 'utf8')
  const blocks = [...css.matchAll(/\{([^{}]*--page:[^{}]*)\}/g)].map(([, block]) => block!)
  assert.equal(blocks.length, 3)
  const colors = blocks.map(
    block => new Map(Array.from(block.matchAll(/--([\w-]+): (#\w+)/g), ([, name, is]) => [name!, is!])),
  )
  assert.deepEqual([...colors[1]!], [...colors[2]!], 'the dark theme of the system and the chosen one are equal')
  return colors.slice(0, 2)
}

/** WCAG 2.2, "relative luminance". */
function luminance(color: string): number {
  const [red, green, blue] = [1, 3, 5].map(at => {
    const share = Number.parseInt(color.slice(at, at + 2), 16) / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!
}

function contrast(one: string, other: string): number {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b)
  return (high! + 0.05) / (low! + 0.05)
}

const TEXTS = ['text', 'muted', 'accent', 'good', 'warn', 'bad', 'off']
const SHADES = [1, 2, 3, 4].map(level => `shade-${level}`)
/** [foregrounds, backgrounds, least contrast]: WCAG 2.2, 1.4.3 for texts and 1.4.11 for lines. */
const CONTRASTS: readonly (readonly [readonly string[], readonly string[], number])[] = [
  [TEXTS, ['page', 'panel'], 4.5],
  [['on-shade'], SHADES, 4.5],
  [['muted'], ['shade-0'], 4.5],
  [['edge', 'second', 'accent'], ['page', 'panel'], 3],
]
test('texts and lines stand out from their backgrounds in both themes', () => {
  for (const [theme, colors] of themes().entries()) {
    for (const [foregrounds, backgrounds, least] of CONTRASTS) {
      for (const [front, back] of foregrounds.flatMap(front => backgrounds.map(back => [front, back] as const))) {
        const found = contrast(colors.get(front)!, colors.get(back)!)
        assert.ok(found >= least, `${theme === 0 ? 'light' : 'dark'}: ${front} on ${back} has ${found.toFixed(2)}`)
      }
    }
  }
})
