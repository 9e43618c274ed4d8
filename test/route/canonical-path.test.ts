/** Canonical paths: their form, paths that are canonicalised, and paths that are refused. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PathCanonicalizer } from '../../src/route/canonical-path.ts'
import { ScannedPath } from '../../src/route/scanned-path.ts'
import { IS_LONG, Random, SEED } from '../harness/random.ts'

const canonicalizer = new PathCanonicalizer()

/** The canonical form, or "!" and the rule that the path violates. */
function canonical(path: string): string {
  const bytes = Buffer.from(`${path}?%41/../`, 'latin1')
  const length = canonicalizer.path(bytes, 0, path.length)
  return typeof length === 'number' ? canonicalizer.out.latin1Slice(0, length) : `!${length.rule}`
}

/** Whether the path is canonical, before a query. */
function isCanonical(path: string): boolean {
  const bytes = Buffer.from(`${path}?%zz//../`, 'latin1')
  return new ScannedPath().read(bytes, 0, bytes.length)
}

const CANONICAL: readonly string[] = [
  '/',
  '/a',
  '/a/',
  "/-._~!$&'()*+,=:@",
  '/.well-known/x',
  '/a..',
  '/...',
  '/..a/.b.',
  '/a%20b',
  '/a%2Bb+c',
  '/100%25',
  '/100%25/2F',
  '/%25g0',
  '/what%3Fis%23this',
  '/%22%3C%3E%5B%5D%5E%60%7B%7C%7D',
  '/caf%C3%A9',
  '/%E2%82%AC/%F0%9F%8D%95',
  '/%ED%9F%BF%EE%80%80%F4%8F%BF%BF',
  '/%EF%BC%8F',
]

const CANONICALISED: readonly (readonly [from: string, to: string])[] = [
  ['/%7Eada', '/~ada'],
  ['/%61%5a%39%2d%2E%5f', '/aZ9-._'],
  ['/%21%24%26%27%28%29%2a%2c%3d%3a%40', "/!$&'()*,=:@"],
  ['/a%2bb', '/a%2Bb'],
  ['/caf%c3%a9', '/caf%C3%A9'],
  ['/caf\xc3\xa9', '/caf%C3%A9'],
  ['/caf\xc3%a9', '/caf%C3%A9'],
  ['/"<>^`{|}[]', '/%22%3C%3E%5E%60%7B%7C%7D%5B%5D'],
  ['//', '/'],
  ['/a//b///c//', '/a/b/c/'],
  ['/.', '/'],
  ['/a/.', '/a/'],
  ['/a/./b', '/a/b'],
  ['/a/..', '/'],
  ['/a/b/..', '/a/'],
  ['/a/b/../c', '/a/c'],
  ['/a/../b/../c', '/c'],
  ['/a/%2e%2E/b', '/b'],
  ['/a/.%2e/b', '/b'],
  ['/a/%2e/b', '/a/b'],
  ['/a//../b', '/b'],
  ['/%25/../2F', '/2F'],
]

const REFUSED: readonly (readonly [path: string, word: string])[] = [
  ['/..', 'root'],
  ['/a/../..', 'root'],
  ['/%2e%2e/a', 'root'],
  ['//..', 'root'],
  ['/%', 'digits'],
  ['/%4', 'digits'],
  ['/%4/', 'digits'],
  ['/%g1', 'digits'],
  ['/%%41', 'digits'],
  ['/%u002f', 'digits'],
  ['/a%2Fb', 'escaped slash'],
  ['/a%2fb', 'escaped slash'],
  ['/a\\b', 'backslash'],
  ['/a%5Cb', 'backslash'],
  ['/a%5c..%5cb', 'backslash'],
  ['/a;b=1', '";"'],
  ['/..;/a', '";"'],
  ['/a%3Bb', '";"'],
  ['/a%3bb', '";"'],
  ['/%00', 'control'],
  ['/%0d%0a', 'control'],
  ['/%09', 'control'],
  ['/%1F', 'control'],
  ['/%7F', 'control'],
  ['/a\x7f', 'control'],
  ['/a\tb', 'control'],
  ['/a b', 'not allowed'],
  ['/a#b', 'not allowed'],
  ['/%252F', 'escape of an escape'],
  ['/%252e%252e/', 'escape of an escape'],
  ['/%25%32%46', 'escape of an escape'],
  ['/%25%2541', 'escape of an escape'],
  ['/%2525', 'escape of an escape'],
  ['/%C0%AF', 'UTF-8'],
  ['/%C0%AE%C0%AE/', 'UTF-8'],
  ['/%c1%9c', 'UTF-8'],
  ['/%E0%80%AF', 'UTF-8'],
  ['/%F0%80%80%AF', 'UTF-8'],
  ['/%F8%80%80%80%AF', 'UTF-8'],
  ['/%ED%A0%80', 'UTF-8'],
  ['/%F4%90%80%80', 'UTF-8'],
  ['/%C3', 'UTF-8'],
  ['/%C3/%A9', 'UTF-8'],
  ['/%C3a', 'UTF-8'],
  ['/%A9', 'UTF-8'],
  ['/\xe9', 'UTF-8'],
  ['/%E2%82', 'UTF-8'],
  ['/%FF', 'UTF-8'],
]

for (const path of CANONICAL) {
  test(`${path} is canonical`, () => {
    assert.equal(canonical(path), path)
    assert.ok(isCanonical(path))
  })
}

for (const [from, to] of CANONICALISED) {
  test(`${JSON.stringify(from)} becomes ${to}`, () => {
    assert.ok(!isCanonical(from))
    assert.equal(canonical(from), to)
    assert.equal(canonical(to), to)
    assert.ok(isCanonical(to))
  })
}

for (const [path, word] of REFUSED) {
  test(`${JSON.stringify(path)} is refused: ${word}`, () => {
    assert.ok(!isCanonical(path))
    const refused = canonical(path)
    assert.ok(refused.startsWith('!') && refused.includes(word), refused)
  })
}

const SCRAPS = [
  ...['/', '/', '/', '//', '.', '..', '/./', '/../', 'a', 'b', 'restricted', '~', '+', '%2B', '%2b', '%20', '%41'],
  ...['%7e', '%2e', '%2E', '%2f', '%5c', ';', '%3b', '%25', '%', '2', '5', '2F', 'C3', '%C3%A9', '%c3', '%A9', '\xc3'],
  ...['\xa9', '%E0%80%AF', '%F0%9F%8D%95', '%00', '%0a', '\\', '"', '{', '|', '%7B', ':', '@', '%3A', '%3F', '%23'],
]

test(`exactly the canonical forms are canonical, and canonicalising them changes nothing (seed ${SEED})`, () => {
  const random = new Random(SEED)
  let canonicalised = 0
  for (let round = 0; round < (IS_LONG ? 2_000_000 : 40_000); round++) {
    let path = '/'
    for (let scraps = random.below(9); scraps > 0; scraps--) path += random.pick(SCRAPS)
    if (random.once(5)) path += String.fromCharCode(random.below(256)).replace('?', '')
    const once = canonical(path)
    assert.equal(isCanonical(path), once === path, JSON.stringify([path, once]))
    if (once.startsWith('!')) continue
    canonicalised++
    assert.equal(canonical(once), once, path)
    assert.ok(isCanonical(once), path)
    assert.match(once, /^\/(?!.*\/\/)(?!.*\/\.{1,2}(?:\/|$))[\w.~!$&'()*+,=:@%/-]*$/)
    assert.ok(once.length <= 3 * path.length + 1)
  }
  assert.ok(canonicalised > 4000)
})

test('the output buffer fits the canonical form of every long path', () => {
  for (const scrap of ['/..a', '%2e', '/a/..', '//', '%25', '%E2%82%AC', '\xe2\x82\xac', '"', '%2525']) {
    const bytes = Buffer.from(`/${scrap.repeat(20_000)}`.slice(0, 99_999), 'latin1')
    const length = new PathCanonicalizer().path(bytes, 0, bytes.length)
    assert.ok(typeof length !== 'number' || length <= 3 * bytes.length + 1)
  }
})

/** [path, canonical form that keeps escaped slashes, whether it had dot segments]. */
const KEPT: readonly (readonly [from: string, to: string, hadDots: boolean])[] = [
  ['/a%2fb', '/a%2Fb', false],
  ['/%61%2F', '/a%2F', false],
  ['//a%2F%2fb/', '/a%2F%2Fb/', false],
  ['/a%2Fb/../c', '/c', true],
  ['/./a%2Fb', '/a%2Fb', true],
  ['/..%2Fa', '/..%2Fa', false],
]

for (const [from, to, hadDots] of KEPT) {
  test(`${from} with its escaped slashes becomes ${to}`, () => {
    const bytes = Buffer.from(from, 'latin1')
    const length = canonicalizer.path(bytes, 0, bytes.length, true)
    assert.ok(typeof length === 'number')
    assert.deepEqual([canonicalizer.out.latin1Slice(0, length), canonicalizer.hadDotSegments], [to, hadDots])
    assert.ok(new ScannedPath().read(canonicalizer.out, 0, length, true))
    assert.equal(new ScannedPath().read(canonicalizer.out, 0, length), !to.includes('%2F'))
  })
}

for (const path of ['/a%252Fb', '/a%2Fb%5C', '/%2F;', '/%c0%af%2F', '/%2F%00', '/%2', '/a%2Fb%ff']) {
  test(`${path} is refused although escaped slashes are kept`, () => {
    const bytes = Buffer.from(path, 'latin1')
    assert.equal(typeof canonicalizer.path(bytes, 0, bytes.length, true), 'object')
    assert.equal(canonical('/a%2Fb'), '!path holds an escaped slash, which backends read in different ways')
  })
}
