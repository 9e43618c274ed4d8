/** The router against a slow and plain model (test/harness/plain-router.ts), while APIs are added and removed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Api } from '../../src/proxy/exchange/api.ts'
import { EVERY_RESOURCE } from '../../src/proxy/exchange/api.ts'
import type { SourceSide } from '../../src/proxy/exchange/contract.ts'
import { Exchange } from '../../src/proxy/exchange/exchange.ts'
import { NO_SUCH_API } from '../../src/proxy/exchange/outcome.ts'
import type { Resource } from '../../src/proxy/exchange/resource.ts'
import type { Head } from '../../src/http1/head.ts'
import { allocateMetrics, MetricsColumn } from '../../src/observe/metrics.ts'
import { ApiTable } from '../../src/route/api-table.ts'
import { ResourceCache } from '../../src/route/resource-cache.ts'
import { ResourceTree } from '../../src/route/resource-tree.ts'
import { Router } from '../../src/route/router.ts'
import { type PlainApi, type PlainAnswer, plainRoute } from '../harness/plain-router.ts'
import { IS_LONG, Random, SEED } from '../harness/random.ts'

const ROUNDS = IS_LONG ? 20_000 : 80
const REQUESTS = 120

const CONTEXTS = ['/a', '/b', '/a/b', '/ab', '/a/1.0.0', '/a+b', '/caf%C3%A9', '/a%20b', '/A', '/%25', '/a.b', '/1.0.0']
const VERSIONS = ['/1.0.0', '/2.0.0', '/1', '/v1', '']
const HOSTS = ['one.test', 'Two.Test', '[::1]', 'a']
const AUTHORITIES = [...HOSTS, 'ONE.test:8290', 'two.test.', 'two.test.:1', '[::1]:80', 'else.test', 'one.test..', '']
const METHODS = ['GET', 'GET', 'HEAD', 'POST', 'OPTIONS', 'DELETE', 'PROPFIND']
const LITERALS = ['a', 'a', 'b', 'ab', 'abc', 'a%20b', 'a+b', 'caf\u{e9}', '%25', '1.0.0', '...', 'a.b']
const MIXED = ['{x}.{y}', '{y}.{z}', 'v{n}', '{x}b', 'a{x}', '{x}a{y}', '{x}-{y}-{z}', '{x}+{y}', '{x}\u{e9}', '{x}%25']
const WORDS = [...LITERALS, ...MIXED, '{x}', '{x}', '{y}']
const SCRAPS = [
  ...['/', '/', '/', '/', '/', '/', '/a', '/b', '/ab', 'a', 'b', 'ab', '-', '.', '.', '+', 'v', 'c', '1.0.0', '/1.0.0'],
  ...['//', '/./', '/../', '/%2e%2E/', '/.', '/..', '%2E', '%61', '%62', '%2B', '%2b', '%20', '%25', '%31', '*', '%2A'],
  ...['caf\xc3\xa9', 'caf%c3%a9', '%C3%A9', 'a%20b', '~', '%7E'],
]
/** Pieces that usually refuse the path. */
const RARE = ['\xe9', '%C0%AF', '%2f', '%5C', ';', '%3b', '%00', '%252e', '%']
const QUERIES = ['', '', '', '?', '?/../a', '?%zz=;#', '?a=b?c', '?%2e%2e%2f']

function randomTemplate(random: Random): string {
  const segments = Array.from({ length: random.below(4) }, () => random.pick(WORDS))
  const end = random.once(4) ? '/*' : random.once(6) && segments.length > 0 ? '/' : ''
  return segments.length === 0 ? end || '/' : `/${segments.join('/')}${end}`
}

/** May declare an operation twice; the first one wins. */
function randomOperations(random: Random): readonly string[] {
  if (random.once(5)) return []
  const verb = () => random.pick(['GET', 'GET', 'POST', 'DELETE', 'OPTIONS', 'HEAD', '*', 'PROPFIND'])
  const all = Array.from({ length: random.between(1, random.once(6) ? 60 : 9) }, () => randomTemplate(random))
  return all.map(template => `${verb()} ${template}`)
}

/** Usually begins with the path of a possible API. */
function randomPath(random: Random): string {
  const scraps = Array.from({ length: random.below(8) }, () =>
    random.pick(random.once(40) ? RARE : random.once(30) ? ['%2F', '%2f'] : SCRAPS),
  )
  const [context, version] = [random.pick(CONTEXTS), random.pick(VERSIONS)]
  const path = `${random.once(4) ? '' : random.once(6) ? `/${context}` : context}${random.once(3) ? '' : version}`
  const text = path + (random.once(4) ? '' : '/') + scraps.join('')
  return text.startsWith('/') ? text : `/${text}`
}

/** Splits at the first space only, because templates may hold spaces. */
function resource(text: string): Resource {
  const at = text.indexOf(' ')
  return { template: text.slice(at + 1), verb: text.slice(0, at), authType: 'None', tier: 'Unlimited', scopes: [] }
}

interface Deployed {
  readonly plain: PlainApi
  readonly api: Api
}

class Routed {
  readonly #table = new ApiTable()
  readonly #cache: ResourceCache
  readonly #bytes = Buffer.alloc(4096)
  readonly #router: Router
  readonly #exchange = new Exchange({} as SourceSide, { peerThumbprint: '' }, '', 1, 'x')
  readonly #deployed: Deployed[] = []
  /** Clock of the cache, in milliseconds. */
  now = 0

  constructor() {
    this.#cache = new ResourceCache(new MetricsColumn(allocateMetrics(1), 0), () => this.now)
    this.#cache.setLifetime(50)
    this.#router = new Router(this.#table, this.#bytes, { targetBytesMax: 4000, headerBytesMax: 4096 })
  }

  get plain(): readonly PlainApi[] {
    return this.#deployed.map(({ plain }) => plain)
  }

  add(plain: PlainApi): void {
    const isOpen = plain.operations.length === 0
    const resources = isOpen ? EVERY_RESOURCE : this.#cache.wrap(new ResourceTree(plain.operations.map(resource)))
    const parts = { version: '', path: plain.paths[0]!, filters: [], production: null, sandbox: null, isAi: false }
    const rest = {
      ...parts,
      fullName: 'a:v1',
      provider: '',
      hostName: 'h',
      isOpen: true,
      escapedSlashes: plain.slashes,
      mediation: null,
      metricsRow: 0,
    }
    const api: Api = { name: plain.name, keyType: 'PRODUCTION', resources, ...rest }
    this.#cache.clear()
    for (const path of plain.paths) this.#table.add({ api, path, hosts: plain.hosts })
    this.#deployed.push({ plain, api })
  }

  removeAt(at: number): void {
    const [{ plain, api } = assert.fail()] = this.#deployed.splice(at, 1)
    this.#cache.clear()
    for (const path of plain.paths) this.#table.remove({ api, path, hosts: plain.hosts })
  }

  route(method: string, target: string, authority: string, form: string): PlainAnswer | 'refused' | 'nobody' {
    const exchange = this.#exchange
    exchange.begin({ now: () => 1 })
    const requestTarget = form + target
    const end = this.#bytes.latin1Write(`${requestTarget} HTTP/1.1\r\n`, 16) + 16
    exchange.head = { targetAt: 16, targetLength: requestTarget.length, end } as Head
    exchange.method = method
    exchange.requestTarget = requestTarget
    exchange.canonicalTarget = requestTarget
    exchange.pathAt = form.length
    exchange.host = authority
    const refused = this.#router.route(exchange)
    if (refused !== undefined) return refused === NO_SUCH_API ? 'nobody' : 'refused'
    const { api, resourcePath, resource, backendPathAt, canonicalTarget: passed } = exchange
    const queryOf = (text: string) => (text.includes('?') ? text.slice(text.indexOf('?')) : '')
    assert.equal(queryOf(passed), queryOf(requestTarget))
    const template = resourcePath?.template ?? ''
    return { api: api!.name, template, verb: resource?.verb ?? '', rest: passed.slice(backendPathAt) }
  }
}

/** Whether no other API has one of the paths on one of the hosts. */
function isFree(held: readonly PlainApi[], paths: readonly string[], hosts: readonly string[]): boolean {
  const places = (api: Pick<PlainApi, 'paths' | 'hosts'>) =>
    api.paths.flatMap(path =>
      api.hosts.length === 0 ? [path] : api.hosts.map(host => `${host.toLowerCase()} ${path}`),
    )
  const taken = new Set(held.flatMap(places))
  return places({ paths, hosts }).every(place => !taken.has(place))
}

test(`random requests find what the model finds (seed ${SEED})`, () => {
  const random = new Random(SEED)
  const routed = new Routed()
  const seen = { found: 0, nobody: 0, refused: 0, noResource: 0 }
  for (let round = 0; round < ROUNDS; round++) {
    if (routed.plain.length > 12) routed.removeAt(random.below(routed.plain.length))
    const version = random.pick(VERSIONS)
    const context = random.pick(CONTEXTS)
    const usual = version !== '' && random.once(3) ? [context + version, context] : [context + version]
    const paths = random.once(60) ? ['/9', '/'] : usual
    const slashes = random.pick(['refuse', 'pass', 'decode'] as const)
    const hosts = random.once(2) ? [] : [...new Set([random.pick(HOSTS), random.pick(HOSTS)])]
    const operations = randomOperations(random)
    if (isFree(routed.plain, paths, hosts)) routed.add({ name: `api ${round}`, paths, hosts, slashes, operations })
    for (let request = 0; request < REQUESTS; request++) {
      const [method, authority] = [random.pick(METHODS), random.pick(AUTHORITIES)]
      const form = random.once(6) ? 'http://one.test' : ''
      const target = (form !== '' && random.once(9) ? '' : randomPath(random)) + random.pick(QUERIES)
      const expected = plainRoute(routed.plain, method, target, authority)
      // The second and third lookup may hit the cache.
      for (let times = random.once(4) ? 3 : 1; times > 0; times--) {
        const found = routed.route(method, target, authority, form)
        assert.deepEqual(found, expected, JSON.stringify([method, target, authority, routed.plain]))
      }
      seen[typeof expected === 'string' ? expected : expected.template === '' ? 'noResource' : 'found']++
      routed.now += random.below(20)
    }
  }
  assert.ok(
    Object.values(seen).every(times => times > ROUNDS),
    JSON.stringify(seen),
  )
})

test('the query of a path that is not canonical is searched in its target alone, not in the arena behind it', t => {
  const bytes = Buffer.alloc(64)
  const search = t.mock.method(bytes, 'indexOf')
  const router = new Router(new ApiTable(), bytes, { targetBytesMax: 64, headerBytesMax: 64 })
  const exchange = new Exchange({} as SourceSide, { peerThumbprint: '' }, '127.0.0.1', 1, 'id-')
  exchange.requestTarget = '//a'
  bytes.latin1Write(`${exchange.requestTarget} HTTP/1.1?`, 0)
  exchange.head = { targetAt: 0, targetLength: exchange.requestTarget.length, end: 32 } as Head
  assert.equal(router.route(exchange), NO_SUCH_API)
  assert.equal(exchange.canonicalTarget, '/a')
  assert.equal(search.mock.callCount(), 0)
})
