/** XPath over documents that clients choose: the same values as the library alone, in bounded time. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { beginTurn } from '../../src/mediation/flow-limits.ts'
import { type DomNode, type XPathValue, xpathLibrary } from '../../src/mediation/lazy-libraries.ts'
import { DEFAULT_LIMITS } from '../../src/mediation/formats/body-limits.ts'
import { parseXmlText } from '../../src/mediation/formats/xml-reader.ts'
import { domOf } from '../../src/mediation/xml-dom.ts'
import { withinTime } from '../../src/mediation/xpath-bounds.ts'
import type { XPathInternals } from '../../src/mediation/xpath-internals.ts'
import { SEED } from '../harness/random.ts'
import { dice, unboundedLibrary } from './unbounded-libraries.ts'

const PATHS = [
  '//*',
  '//a//b',
  '//*//*//*',
  '/r/a[2]/b',
  '//b[last()]',
  '//@k',
  '//a[@k="2"]/following::b',
  '//b/preceding::a[1]',
  '//b/ancestor::*[2]',
  '//a/descendant-or-self::a',
  '//a[b]/b | //b',
  '//text()',
  '(//b)[3]',
  'string(//b)',
  'count(//*[count(.//b) > 1])',
  'sum(//@k)',
  'name(//b[4]/..)',
  '//a[. = //b]',
  '//a = //b',
  '//b = //a//b',
  '//b = //@k',
  '//b != //a//b',
  '//@k != //@k',
  '//b[. = "x"] != //b[. = "x"]',
  '//zz = //b',
  '//b != //zz',
  '//b = "z"',
  '//@k != 2',
]

const NESTED = `<r>${'<a k="1"><b>x</b><a k="2"><b>y</b><b>z</b></a>t</a>'.repeat(20)}</r>`

const unbounded = withCorrectSides(unboundedLibrary<ReturnType<typeof xpathLibrary> & XPathInternals>('xpath'))

/** For the library alone descendants follow a node, and ancestors precede it (XPath 1.0, 2.2 excludes both). */
function withCorrectSides(library: ReturnType<typeof xpathLibrary> & XPathInternals): typeof library {
  const { PathExpr, Step } = library
  const { applyStep } = PathExpr
  PathExpr.applyStep = (step, context, node) => {
    if (step.axis !== Step.FOLLOWING && step.axis !== Step.PRECEDING) return applyStep(step, context, node)
    const lines = (of: DomNode | null): DomNode[] =>
      of === null ? [] : [of, ...lines(of.ownerElement ?? of.parentNode)]
    const isBehind = step.axis === Step.FOLLOWING
    const found: DomNode[] = []
    const visit = (each: DomNode): void => {
      const isWithin = lines(each).includes(node) || lines(node).includes(each)
      if (!isWithin && each.order! > node.order! === isBehind && step.nodeTest.matches(each, context)) found.push(each)
      for (const child of each.childNodes) visit(child)
    }
    for (const child of (node.ownerDocument ?? node).childNodes) visit(child)
    return isBehind ? found : found.reverse()
  }
  return library
}

function rootOf(xml: string): DomNode {
  return domOf(parseXmlText(xml, DEFAULT_LIMITS))
}

function evaluate(library: ReturnType<typeof xpathLibrary>, path: string, node: DomNode, limitMs?: number): XPathValue {
  const options = { node, namespaces: {}, variables: () => '', functions: () => undefined }
  // Earlier tests may have computed in the same turn.
  beginTurn()
  return withinTime(() => library.parse(path).evaluate(options), limitMs)
}

function shown(value: XPathValue): unknown {
  return value.toArray?.() ?? value.stringValue()
}

type Roll = ReturnType<typeof dice>

function pick<T>(roll: Roll, of: readonly T[]): T {
  return of[roll(of.length)]!
}

function assertSame(path: string, root: DomNode, what: string): void {
  const outcomes = [xpathLibrary(), unbounded].map(library => {
    try {
      return shown(evaluate(library, path, root))
    } catch (error) {
      return String(error)
    }
  })
  // Nodes are compared by identity: a comparison by structure would walk the whole document each time.
  const [is, wanted] = outcomes
  if (!Array.isArray(is) || !Array.isArray(wanted)) assert.equal(is, wanted, what)
  else assert.ok(is.length === wanted.length && is.every((node, at) => node === wanted[at]), what)
}

test('every path has the value that the library alone gives it', () => {
  const root = rootOf(NESTED)
  for (const path of PATHS) assertSame(path, root, path)
})

test('neither descendants follow a node, nor do ancestors precede it', () => {
  const root = rootOf('<r><a><b><c/></b><d/></a><e k="1"><f/></e></r>')
  for (const [path, names] of [
    ['//b/following::*', ['d', 'e', 'f']],
    ['//f/preceding::*', ['a', 'b', 'c', 'd']],
    ['//c/preceding::*', []],
    ['//e/@k/following::*', ['f']],
    ['//e/@k/preceding::*', ['a', 'b', 'c', 'd']],
    ['//f/preceding::*[1]', ['d']],
  ] as const) {
    const nodes = evaluate(xpathLibrary(), path, root).toArray!()
    assert.deepEqual(
      nodes.map(({ nodeName }) => nodeName),
      names,
      path,
    )
  }
})

const TEXTS = ['x', 'y', '1', '2', '-0', '0', 'NaN', '1.0', ' 2 ', '']
const AXES = [
  ...['', '', './/', '..//', '../', '../../', '@', 'self::', 'ancestor::', 'ancestor-or-self::', 'descendant::'],
  ...['following-sibling::', 'preceding-sibling::', 'following::', 'preceding::', '//', '/r/', '/r//', '../@'],
]
const TESTS = ['a', 'b', 'c', '*', 'node()', 'text()', 'k']
const COMPARED = ['=', '!=', '<', '<=', '>', '>=']

function randomXml(roll: Roll, depth: number): string {
  const name = pick(roll, ['a', 'b', 'c'])
  const attribute = roll(3) === 0 ? ` k="${pick(roll, TEXTS)}"` : ''
  const children = depth === 0 ? [] : Array.from({ length: roll(5) }, () => randomXml(roll, depth - 1))
  const text = roll(2) === 0 ? pick(roll, TEXTS) : ''
  return `<${name}${attribute}>${text}${children.join(roll(4) === 0 ? 'x' : '')}</${name}>`
}

function randomPath(roll: Roll, depth: number): string {
  const steps = Array.from({ length: 1 + roll(2) }, (_, at) => {
    const axis = pick(roll, at === 0 ? AXES : AXES.filter(each => !each.startsWith('/')))
    return `${axis}${pick(roll, TESTS)}${depth > 0 && roll(2) === 0 ? `[${randomPredicate(roll, depth - 1)}]` : ''}`
  })
  const path = steps.join('/')
  return roll(8) === 0 ? `(${path})[${1 + roll(3)}]` : path
}

function randomPredicate(roll: Roll, depth: number): string {
  const path = () => randomPath(roll, depth)
  return pick(roll, [
    path,
    () => String(1 + roll(3)),
    () => 'last()',
    () => `position() ${pick(roll, COMPARED)} ${roll(3)}`,
    () => `${path()} ${pick(roll, COMPARED)} ${path()}`,
    () => `${pick(roll, ['.', '@k', '..'])} ${pick(roll, COMPARED)} ${path()}`,
    () =>
      `${path()} ${pick(roll, COMPARED)} ${pick(roll, ['"x"', '1', '0', '"2"', 'true()', 'number("q")', 'string()'])}`,
    () => `${pick(roll, ['number()', 'string()', '-1', 'position()', 'not(b)'])} ${pick(roll, COMPARED)} ${path()}`,
    () => `count(${path()}) ${pick(roll, COMPARED)} ${roll(4)}`,
    () => `not(${path()}) and ${path()} or ${path()}`,
    () => `string(${path()}) = string(${path()})`,
    () => `count(${path()} | ${path()}) > ${roll(5)}`,
    () => `sum(${path()}) + 1 > ${roll(4)} or name(${path()}) = name()`,
  ])()
}

test('random paths have the values that the library alone gives them', () => {
  const roll = dice(SEED)
  for (let round = 0; round < 40; round++) {
    const xml = `<r>${Array.from({ length: 1 + roll(4) }, () => randomXml(roll, 2)).join('')}</r>`
    const root = rootOf(xml)
    for (let at = 0; at < 25; at++) {
      const path = pick(roll, [() => randomPath(roll, 1), () => `//*[${randomPredicate(roll, 1)}]`])()
      assertSame(path, root, `seed ${SEED}: ${path} in ${xml}`)
    }
  }
})

const NUMBERS = ['12', '-1.5', ' .5 ', '0.0', '\t7\n', '1.', '-', '.', '1 2', '+1', '1e5', '--1', '1.2.3', '']

test('a text is a number for every text that is one for the library alone', () => {
  for (const text of NUMBERS) {
    const [is, expected] = [xpathLibrary(), unbounded].map(library =>
      evaluate(library, `number("${text}")`, rootOf('<r/>')),
    )
    assert.equal(is!.stringValue(), expected!.stringValue(), text)
  }
})

test('a text of a million digits that is no number is read in one go', () => {
  assert.equal(evaluate(xpathLibrary(), '/r > 3', rootOf(`<r>${'1'.repeat(1_000_000)}x</r>`)).stringValue(), 'false')
})

const DEEP = `${'<a>'.repeat(190)}${'</a>'.repeat(190)}`
/** Enough for work in proportion to the nodes on a machine that is busy, and too little for its square. */
const PATIENCE_MS = 10_000
const NUMBERED = `<r>${Array.from({ length: 20_000 }, (_, at) => `<a>${at}</a><b>x${at}</b>`).join('')}</r>`
const WIDE = `<r>${'<a><b/></a>'.repeat(20_000)}</r>`

test('a path through a deep document and through many siblings takes no more than its nodes', () => {
  const [deep, wide, numbered] = [rootOf(DEEP), rootOf(WIDE), rootOf(NUMBERED)]
  for (const [root, path, count] of [
    [deep, 'count(//*//*//*//*)', '187'],
    [wide, 'count(//*//*)', '40000'],
    [wide, 'count(//b)', '20000'],
    [wide, 'name((//b)[1]/..)', 'a'],
    [numbered, '//a = //b', 'false'],
    [wide, '//a != //b', 'false'],
    [numbered, 'count(//a[. = //b])', '0'],
    [numbered, 'count(//a[. < //b])', '0'],
    [numbered, 'count(//a[. > ../a])', '19999'],
    [numbered, 'count(//a[. != //b])', '20000'],
    [numbered, 'count(//a[not(. = preceding-sibling::a)])', '20000'],
    [wide, 'count(//a[following-sibling::c])', '0'],
    [wide, 'count(//a[count(preceding-sibling::a) > 3])', '19996'],
    [wide, 'count(//b[preceding::b[1]])', '19999'],
    [wide, 'count(//b[not(. = following::c)])', '20000'],
    [wide, 'count(//b/following::b)', '19999'],
  ] as const) {
    assert.equal(evaluate(xpathLibrary(), path, root, PATIENCE_MS).stringValue(), count, path)
  }
})

test('an expression that takes too long is a fault with a code', () => {
  const root = rootOf(`<r>${'<a><b>x</b></a>'.repeat(20_000)}</r>`)
  for (const path of ['count(//a[string(..) = "x"])', 'count(//b[preceding::b != "x"])']) {
    assert.throws(
      () => evaluate(xpathLibrary(), path, root, 100),
      (error: { raised?: { code: number } }) => error.raised?.code === 102542,
      path,
    )
  }
})
