/** Which resource a path is for: templates, their order, methods; and that a lenient backend finds the same one. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Resource } from '../../src/exchange/resource.ts'
import { ResourceTree } from '../../src/route/resource-tree.ts'
import { canonicalRoom, putCanonicalPath } from '../../src/structure/canonical-path.ts'
import { isTemplateFault, readTemplate } from '../../src/structure/path-template.ts'
import { ScannedPath } from '../../src/structure/scanned-path.ts'
import { bestTemplate, lenientPath } from '../harness/lenient-backend.ts'
import { IS_LONG, Random, SEED } from '../harness/random.ts'

function resource(template: string, verb = 'GET'): Resource {
  return { template, verb, authType: 'None', tier: 'Unlimited', scopes: [] }
}

const scanned = new ScannedPath()

/** Of `/api/1.0.0` and a canonical rest. */
function find(tree: ResourceTree, rest: string) {
  const bytes = Buffer.from(`/api/1.0.0${rest}?a=/b`, 'latin1')
  assert.ok(scanned.read(bytes, 0, bytes.length), rest)
  return tree.find(scanned, 2)
}

interface Case {
  readonly name: string
  readonly templates: readonly string[]
  /** Path behind context and version, and the template that it is for; '' for none. */
  readonly finds: readonly (readonly [rest: string, template: string])[]
}

const CASES: readonly Case[] = [
  {
    name: 'a literal',
    templates: ['/menu', '/menu/today'],
    finds: [
      ['/menu', '/menu'],
      ['/menu/today', '/menu/today'],
      ['/Menu', ''],
      ['/men', ''],
      ['/menus', ''],
      ['/menu/x', ''],
      ['/', ''],
      ['', ''],
    ],
  },
  {
    name: 'the root, with a slash and without',
    templates: ['/'],
    finds: [
      ['/', '/'],
      ['', '/'],
      ['/a', ''],
    ],
  },
  {
    name: 'one slash at the end makes no difference',
    templates: ['/restricted', '/*', '/list/'],
    finds: [
      ['/restricted/', '/restricted'],
      ['/restricted', '/restricted'],
      ['/list', '/list/'],
      ['/list/', '/list/'],
      ['/restricted/x', '/*'],
    ],
  },
  {
    name: 'one slash at the end makes one where both are declared',
    templates: ['/list', '/list/', '/list/*'],
    finds: [
      ['/list', '/list'],
      ['/list/', '/list/'],
      ['/list/x', '/list/*'],
    ],
  },
  {
    name: 'a variable is one segment, and not an empty one',
    templates: ['/pets/{id}', '/pets/{id}/toys'],
    finds: [
      ['/pets/7', '/pets/{id}'],
      ['/pets/%20', '/pets/{id}'],
      ['/pets/7/', '/pets/{id}'],
      ['/pets/', ''],
      ['/pets', ''],
      ['/pets/7/toys', '/pets/{id}/toys'],
      ['/pets/7/8', ''],
    ],
  },
  {
    name: 'a wildcard takes the rest, and none',
    templates: ['/menu/*'],
    finds: [
      ['/menu', '/menu/*'],
      ['/menu/', '/menu/*'],
      ['/menu/a/b/c/', '/menu/*'],
      ['/menus', ''],
      ['/', ''],
    ],
  },
  {
    name: 'a wildcard alone takes everything',
    templates: ['/*'],
    finds: [
      ['', '/*'],
      ['/', '/*'],
      ['/a/b', '/*'],
    ],
  },
  {
    name: 'parts of a segment',
    templates: ['/{name}.{format}', '/v{major}', '/v{major}.{minor}', '/{a}-{b}-{c}', '/{x}'],
    finds: [
      ['/a.json', '/{name}.{format}'],
      ['/a.b.json', '/{name}.{format}'],
      ['/.json', '/{x}'],
      ['/a.', '/{x}'],
      ['/v1', '/v{major}'],
      ['/v', '/{x}'],
      ['/v1.2', '/v{major}.{minor}'],
      ['/1-2-3', '/{a}-{b}-{c}'],
      ['/1--2-3', '/{a}-{b}-{c}'],
      ['/1-2-', '/{x}'],
      ['/--', '/{x}'],
      ['/-----', '/{a}-{b}-{c}'],
    ],
  },
  {
    name: 'a part of a segment is no part of an escape',
    templates: ['/{a}25{b}', '/{a}2{b}', '/x{a}'],
    finds: [
      ['/a25b', '/{a}25{b}'],
      ['/a%25b', ''],
      ['/a%20b', ''],
      ['/x%25', '/x{a}'],
      ['/a%25y25b', '/{a}25{b}'],
    ],
  },
  {
    name: 'a literal before parts, the longer ones first, before a variable, before the rest',
    templates: ['/*', '/{x}', '/v{n}', '/ve{n}', '/version'],
    finds: [
      ['/version', '/version'],
      ['/versions', '/ve{n}'],
      ['/vx', '/v{n}'],
      ['/x', '/{x}'],
      ['/x/y', '/*'],
      ['/version/y', '/*'],
    ],
  },
  {
    name: 'what leads nowhere is taken back',
    templates: ['/a/b/c', '/a/{x}/d', '/{y}/b/e', '/a/*', '/{y}/b/{z}/f'],
    finds: [
      ['/a/b/c', '/a/b/c'],
      ['/a/b/d', '/a/{x}/d'],
      ['/a/b/e', '/a/*'],
      ['/q/b/e', '/{y}/b/e'],
      ['/q/b/z/f', '/{y}/b/{z}/f'],
      ['/q/b/z', ''],
    ],
  },
  {
    name: 'a wildcard further down goes before a variable further up',
    templates: ['/menu/*', '/{x}'],
    finds: [
      ['/menu', '/menu/*'],
      ['/other', '/{x}'],
    ],
  },
  {
    name: 'literals are in canonical form, whichever they are declared in',
    templates: ['/café', '/a%7eb', '/x%20y', '/s"t', '/100%25'],
    finds: [
      ['/caf%C3%A9', '/café'],
      ['/a~b', '/a%7eb'],
      ['/x%20y', '/x%20y'],
      ['/s%22t', '/s"t'],
      ['/100%25', '/100%25'],
    ],
  },
  {
    name: '"+" and its escape are the same',
    templates: ['/a+b', '/c%2Bd', '/{x}+y', '/+/z'],
    finds: [
      ['/a+b', '/a+b'],
      ['/a%2Bb', '/a+b'],
      ['/c+d', '/c%2Bd'],
      ['/c%2Bd', '/c%2Bd'],
      ['/q%2By', '/{x}+y'],
      ['/q+y', '/{x}+y'],
      ['/%2B/z', '/+/z'],
      ['/a%20b', ''],
    ],
  },
]

for (const { name, templates, finds } of CASES) {
  for (const [rest, expected] of finds) {
    test(`${name}: ${rest === '' ? 'nothing' : rest}`, () => {
      for (const order of [templates, templates.toReversed()]) {
        const tree = new ResourceTree(order.map(template => resource(template)))
        assert.equal(find(tree, rest)?.template ?? '', expected)
      }
    })
  }
}

const NO_TEMPLATES: readonly string[] = [
  '',
  'menu',
  '/a//b',
  '//',
  '/a/../b',
  '/./a',
  '/%2e%2e',
  '/a?x={y}',
  '/a b',
  '/a#b',
  '/a*',
  '/*/a',
  '/a%2Fb',
  '/a;b',
  '/a\\b',
  '/%zz',
  '/%252F',
  '/%C0%AF',
  '/{a}{b}',
  '/{}',
  '/{a',
  '/a}',
  '/{a}}',
  '/{+a}',
  '/{a:[0-9]+}',
  '/{a*}',
  `/${'x'.repeat(3000)}`,
  '/a'.repeat(200),
]

for (const text of NO_TEMPLATES) {
  test(`no template: ${text.slice(0, 40)}`, () => {
    const read = readTemplate(text)
    assert.ok(isTemplateFault(read))
    assert.ok(read.expected !== '' && read.remedy !== '')
    assert.equal(find(new ResourceTree([resource(text)]), '/a'), null)
  })
}

interface VerbCase {
  readonly verbs: readonly string[]
  readonly allow: string
  /** Method, and the verb of the resource that serves it; '' for none. */
  readonly serves: readonly (readonly [method: string, verb: string])[]
}

const VERBS: readonly VerbCase[] = [
  {
    verbs: ['GET'],
    allow: 'GET, HEAD',
    serves: [
      ['GET', 'GET'],
      ['HEAD', 'GET'],
      ['OPTIONS', ''],
      ['get', ''],
    ],
  },
  {
    verbs: ['DELETE', 'HEAD', 'GET', 'PROPFIND', 'POST'],
    allow: 'GET, HEAD, POST, DELETE, PROPFIND',
    serves: [
      ['HEAD', 'HEAD'],
      ['PROPFIND', 'PROPFIND'],
      ['PUT', ''],
    ],
  },
  {
    verbs: ['POST', 'OPTIONS'],
    allow: 'POST, OPTIONS',
    serves: [
      ['HEAD', ''],
      ['OPTIONS', 'OPTIONS'],
    ],
  },
  {
    verbs: ['*', 'GET'],
    allow: 'GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS',
    serves: [
      ['GET', 'GET'],
      ['HEAD', 'GET'],
      ['PATCH', '*'],
      ['OPTIONS', '*'],
    ],
  },
]

for (const { verbs, allow, serves } of VERBS) {
  test(`methods of ${verbs}`, () => {
    const tree = new ResourceTree(verbs.map(verb => resource('/a/{x}', verb)))
    const place = find(tree, '/a/1')!
    assert.equal(place.allow, allow)
    for (const [method, verb] of serves) assert.equal(place.resource(method)?.verb ?? '', verb, method)
  })
}

test('names of variables make no difference; of two of one verb the first holds', () => {
  const first = resource('/a/{x}')
  const tree = new ResourceTree([first, resource('/a/{y}', 'POST'), { ...resource('/a/{z}'), tier: 'Gold' }])
  const place = find(tree, '/a/1')!
  assert.equal(place.allow, 'GET, HEAD, POST')
  assert.equal(place.resource('GET'), first)
  assert.equal(place.resource('POST')!.template, '/a/{y}')
})

test('of many literals each is found', () => {
  const tree = new ResourceTree(Array.from({ length: 3000 }, (_, i) => resource(`/thing${i}/{id}`)))
  for (let i = 0; i < 3000; i++) assert.equal(find(tree, `/thing${i}/x`)!.template, `/thing${i}/{id}`)
  assert.equal(find(tree, '/thing3000/x'), null)
})

test('paths deeper than any template end in a wildcard or in nothing', () => {
  const tree = new ResourceTree([resource('/a/{x}'), resource('/b/*')])
  assert.equal(find(tree, `/a${'/a'.repeat(3000)}`), null)
  assert.equal(find(tree, `/b${'/b'.repeat(3000)}`)!.template, '/b/*')
})

const WORDS = ['a', 'b', 'ab', '+', 'a+b', 'caf%C3%A9', '%25', '100%25', '{x}', '{x}', '{x}.{y}', 'v{n}', '{x}%25{y}']
const SCRAPS = [
  ...['/', '/', '/', '/', '//', '/./', '/../', '/%2e%2E/', '/.', '.', 'a', 'b', 'ab', '%61', '%62', 'v', '%76', '+'],
  ...[
    '%2B',
    '%2b',
    'caf\xc3\xa9',
    'caf%C3%A9',
    '%C3%A9',
    '100%25',
    '%25',
    '25',
    '%2525',
    'x',
    '%2f',
    '%5c',
    ';a',
    '%3B',
  ],
  ...['%00', '%20', '%2E', '{x}', '\\', '%C0%AF', 'A', '%41', '*', '%2A'],
]

test(`a backend that takes every liberty finds the same resource (seed ${SEED})`, () => {
  const random = new Random(SEED)
  let found = 0
  for (let round = 0; round < (IS_LONG ? 20_000 : 400); round++) {
    const templates = new Set(Array.from({ length: random.between(1, 12) }, () => randomTemplate(random)))
    // Told apart by the slash at the end alone, they are two only for a backend that looks at it.
    const declared = [...templates].filter(template => template === '/' || !templates.has(template.replace(/\/$/, '')))
    const tree = new ResourceTree(declared.map(template => resource(template)))
    for (let paths = 0; paths < 100; paths++) {
      let path = '/'
      for (let scraps = random.below(7); scraps > 0; scraps--) path += random.pick(SCRAPS)
      const bytes = Buffer.from(path, 'latin1')
      const out = Buffer.alloc(canonicalRoom(bytes.length))
      const length = putCanonicalPath(out, bytes, 0, bytes.length)
      if (typeof length !== 'number') continue
      assert.ok(scanned.read(out, 0, length))
      const passedOn = out.latin1Slice(0, length)
      const expected = bestTemplate(declared, lenientPath(passedOn))
      if (expected !== '') found++
      assert.equal(tree.find(scanned, 0)?.template ?? '', expected, JSON.stringify([path, passedOn, declared]))
    }
  }
  assert.ok(found > 5000, `${found}`)
})

function randomTemplate(random: Random): string {
  const segments = Array.from({ length: random.below(4) }, () => random.pick(WORDS))
  const end = random.once(4) ? '/*' : random.once(8) && segments.length > 0 ? '/' : ''
  return segments.length === 0 ? end || '/' : `/${segments.join('/')}${end}`
}

test('twenty thousand templates with literal parts are a tree in no time', { timeout: 30_000 }, () => {
  const tree = new ResourceTree(Array.from({ length: 20_000 }, (_, at) => resource(`/item{n}-${at}`)))
  assert.equal(find(tree, '/itemX-19999')?.template, '/item{n}-19999')
  assert.equal(tree.effort, 100_001)
})
