/** Plans the connection of each reactor to the Redis of shared counters: `[apim.throttling.redis]`. */
import { randomUUID } from 'node:crypto'
import type { Configuration } from '../config/catalogue.ts'
import type { Diagnostic } from '../config/diagnostics.ts'
import type { PolicySet } from '../throttle/policy.ts'
import type { RedisPlan } from '../throttle/redis-counters.ts'
import type { TlsPlans } from '../tls/tls-material.ts'

const DEFAULT_PORT = 6379
/** Names that a warning shows. */
const NAMES_MAX = 10
/** The same in all reactors of this process. */
const GATEWAY = randomUUID()

/** Null where no Redis is configured. TLS is that of backends: of the profile for `host:port`, else the default. */
export function redisPlan(configuration: Configuration, tls: TlsPlans | null): RedisPlan | null {
  const redis = configuration['apim.throttling.redis']
  if (redis.url === '') return null
  const address = new URL(redis.url)
  const hostname = address.hostname.toLowerCase()
  const port = address.port === '' ? DEFAULT_PORT : Number(address.port)
  const clients = tls?.clients ?? []
  const planFor = (name: string) => clients.find(({ match }) => match === name)?.plan
  return {
    host: hostname.replace(/^\[|\]$/g, ''),
    port,
    username: redis.username,
    password: redis.password,
    database: redis.database,
    tls: redisUsesTls(configuration) ? (planFor(`${hostname}:${port}`) ?? planFor('default')!) : null,
    timeoutMs: redis.timeout,
    pendingMax: redis['pending.max'],
    keyPrefix: redis.key_prefix,
    gateway: GATEWAY,
    gatewaysMin: redis.gateways,
  }
}

/** True if reactors need the stores of TLS clients for Redis. */
export function redisUsesTls(configuration: Configuration): boolean {
  return configuration['apim.throttling.redis'].url.startsWith('rediss:')
}

/** A warning for policies that count in Redis where no Redis is configured. */
export function withoutRedis(configuration: Configuration, { policies }: PolicySet): readonly Diagnostic[] {
  const names = policies.filter(({ scope }) => scope === 'redis').map(({ level, name }) => `${level}:${name}`)
  if (names.length === 0 || configuration['apim.throttling.redis'].url !== '') return []
  const shown = names.slice(0, NAMES_MAX).join(', ')
  const expected = `no Redis is configured, so fail modes decide on every request: ${shown}`
  return [{ where: 'policies', key: 'scope', given: 'redis', expected, hint: 'set apim.throttling.redis.url' }]
}
