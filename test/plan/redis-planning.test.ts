/** The plan of the connection to Redis, and what `[apim.throttling.redis]` refuses. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type ConfigurationErrors, formatDiagnostic } from '../../src/config/diagnostics.ts'
import { redisPlan, withoutRedis } from '../../src/plan/redis-planning.ts'
import { DEFAULT_POLICIES } from '../../src/throttle/policy.ts'
import { temporaryHome } from '../config/temporary-home.ts'
import { loadConfiguration } from '../harness/configuration.ts'
import { clientPlan } from '../socket/secured.ts'

/** [url, host, port, whether TLS is used]. */
const URLS: readonly (readonly [string, string, number, boolean])[] = [
  ['redis://cache.example', 'cache.example', 6379, false],
  ['redis://Cache.Example:6380/', 'cache.example', 6380, false],
  ['rediss://10.0.0.5:443', '10.0.0.5', 443, true],
  ['rediss://[::1]:6379', '::1', 6379, true],
]
/** [lines, text of the error or warning]. */
const WRONG: readonly (readonly [string, RegExp])[] = [
  [
    'url = "http://cache.example"',
    /apim\.throttling\.redis\.url = "http:\/\/cache\.example": expected a URL, redis:\/\/… or rediss:\/\/…/,
  ],
  ['url = "redis://me:secret@cache.example"', /url must have a host and a port only/],
  ['url = "redis://cache.example/3"', /url must have a host and a port only/],
  ['url = "redis://cache.example"\npassword = "hidden"', /password goes to another machine in clear text/],
]
const DEFAULT = clientPlan()
const OF_SERVER = clientPlan({ hostname: 'none' })
const TLS = {
  server: null,
  wss: DEFAULT,
  clients: [
    { match: 'cache.example:6380', plan: OF_SERVER },
    { match: 'default', plan: DEFAULT },
  ],
}

function load(t: TestContext, lines: string) {
  return loadConfiguration(temporaryHome(t, { 'deployment.toml': `[apim.throttling.redis]\n${lines}\n` }), [])
}

for (const [url, host, port, isSecured] of URLS) {
  test(`${url} is ${host}, port ${port}, ${isSecured ? 'with' : 'without'} TLS`, t => {
    const plan = redisPlan(load(t, `url = "${url}"`).configuration, TLS)
    assert.deepEqual([plan?.host, plan?.port, plan?.tls], [host, port, isSecured ? DEFAULT : null])
  })
}

test('without a URL there is no connection', t => {
  assert.equal(redisPlan(load(t, 'timeout = "50ms"').configuration, TLS), null)
})

test('a TLS profile for the address of Redis holds for it', t => {
  assert.equal(redisPlan(load(t, 'url = "rediss://cache.example:6380"').configuration, TLS)?.tls, OF_SERVER)
})

test('every setting is in the plan, and the gateway is the same in every reactor', t => {
  const lines =
    'username = "u"\npassword = "p"\ndatabase = 2\nkey_prefix = "k:"\ntimeout = "2s"\npending.max = 5\ngateways = 3'
  const { configuration } = load(t, `url = "redis://localhost"\n${lines}`)
  const { gateway, ...plan } = redisPlan(configuration, null)!
  const limits = { timeoutMs: 2000, pendingMax: 5, gatewaysMin: 3 }
  const account = { username: 'u', password: 'p', database: 2, keyPrefix: 'k:' }
  assert.deepEqual(plan, { host: 'localhost', port: 6379, tls: null, ...account, ...limits })
  assert.match(gateway, /^[0-9a-f-]{36}$/)
  assert.equal(redisPlan(configuration, null)!.gateway, gateway)
})

for (const [lines, text] of WRONG) {
  test(`refused or warned of: ${lines.replace('\n', ', ')}`, t => {
    let found: readonly string[]
    try {
      found = load(t, lines).warnings
    } catch (error) {
      found = [(error as ConfigurationErrors).message]
    }
    assert.match(found.join('\n'), text)
    assert.doesNotMatch(found.join('\n'), /secret@|hidden/)
  })
}

test('policies that count in Redis are warned of where none is configured', t => {
  const gold = { ...DEFAULT_POLICIES[0]!, scope: 'redis' } as const
  const set = { policies: [...DEFAULT_POLICIES, gold], denied: [] }
  const { configuration } = load(t, '')
  assert.deepEqual(withoutRedis(configuration, set).map(formatDiagnostic), [
    'policies: scope = redis: no Redis is configured, so fail modes decide on every request: subscription:Gold (set apim.throttling.redis.url)',
  ])
  assert.deepEqual(withoutRedis(configuration, { ...set, policies: DEFAULT_POLICIES }), [])
  assert.deepEqual(withoutRedis(load(t, 'url = "redis://localhost"').configuration, set), [])
})
