/** The caches of a reactor, as its metrics list them. */
import type { ReactorAuth } from '../auth/reactor-auth.ts'
import { CacheWatch } from '../observe/cache-metrics.ts'
import type { MetricsColumn } from '../observe/metrics.ts'
import type { PoolContext } from '../proxy/target/connection-pool.ts'
import type { ResourceCache } from '../route/resource-cache.ts'
import { type CacheUsage, sumOfUsages } from '../runtime/cache-usage.ts'
import type { DnsCache } from '../socket/dns-cache.ts'
import type { ReactorMediation } from './reactor-mediation.ts'
import type { ReactorTls } from './reactor-tls.ts'

interface CachedParts {
  readonly auth: ReactorAuth
  /** Fields that clients repeat. */
  readonly fields: () => CacheUsage
  readonly pools: Pick<PoolContext, 'repeatedHeads'>
  readonly resources: ResourceCache
  readonly dns: DnsCache
  readonly tls: ReactorTls
  /** Null until an API needs it. */
  readonly mediation: () => ReactorMediation | null
}

export function cacheWatchOf(column: MetricsColumn, parts: CachedParts): CacheWatch {
  const { auth, fields, pools, resources, dns, tls, mediation } = parts
  const { tokens, passwords, backend } = auth
  return new CacheWatch(column, {
    token: () => tokens.acceptedUsage(),
    refused_token: () => tokens.refusedUsage(),
    password: () => passwords.usage(),
    backend_jwt: () => backend.jwts.usage(),
    user_claims: () => backend.jwts.claimsUsage(),
    anonymous_caller: () => auth.anonymousUsage(),
    head: () => sumOfUsages([fields(), pools.repeatedHeads.usage()]),
    resource: () => resources.usage(),
    dns: () => dns.usage(),
    tls_session: () => tls.usage(),
    kept_response: () => mediation()?.keptResponsesUsage() ?? null,
    dynamic_endpoint: () => mediation()?.dynamicEndpointsUsage() ?? null,
  })
}
