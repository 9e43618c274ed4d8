/** XPath over documents that clients choose: the same values as the library alone, in bounded time. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { beginTurn } from '../../src/mediation/flow-limits.ts'
import { type DomNode, type XPathValue, xpathLibrary } from '../../src/mediation/lazy-libraries.ts'
import { DEFAULT_LIMITS } from '../../src/mediation/formats/body-limits.ts'
import { parseXmlText } from '../../src/mediation/formats/xml-reader.ts'
import { domOf } from '../../src/mediation/xml-dom.ts'
import { withinTime } from '../../src/mediation/xpath-bounds.ts'
import { unboundedLibrary } from './unbounded-libraries.ts'

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

const unbounded = unboundedLibrary<ReturnType<typeof xpathLibrary>>('xpath')

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

test('every path has the value that the library alone gives it', () => {
  const root = rootOf(NESTED)
  for (const path of PATHS) {
    const [value, expected] = [evaluate(xpathLibrary(), path, root), evaluate(unbounded, path, root)]
    // Nodes are compared by identity: a comparison by structure would walk the whole document each time.
    const [is, wanted] = [shown(value), shown(expected)]
    if (!Array.isArray(is) || !Array.isArray(wanted)) assert.equal(is, wanted, path)
    else assert.ok(is.length === wanted.length && is.every((node, at) => node === wanted[at]), path)
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
  ] as const) {
    assert.equal(evaluate(xpathLibrary(), path, root, PATIENCE_MS).stringValue(), count, path)
  }
})

test('an expression that takes too long is a fault with a code', () => {
  const root = rootOf(`<r>${'<a><b>x</b></a>'.repeat(20_000)}</r>`)
  for (const path of ['count(//*[string(/) = "x"])', 'count(//b/following::*)']) {
    assert.throws(
      () => evaluate(xpathLibrary(), path, root, 100),
      (error: { raised?: { code: number } }) => error.raised?.code === 102542,
      path,
    )
  }
})
