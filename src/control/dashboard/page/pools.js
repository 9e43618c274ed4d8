/** Rows of the tables of pools, caches and threads, from what the gateway counts. */

/** Names of the caches, with what the names of their counts begin with. */
export const CACHES = {
  tokens: 'token',
  'refused tokens': 'refusedToken',
  passwords: 'password',
  'backend JWTs': 'backendJwt',
  'user claims': 'userClaims',
  'anonymous callers': 'anonymousCaller',
  'header fields': 'head',
  resources: 'resourceCache',
  'host names': 'dns',
  'TLS sessions': 'tlsSession',
  'dynamic endpoints': 'dynamicEndpoint',
  'kept responses': 'keptResponse',
  introspections: 'introspection',
  'verified secrets': 'verifiedSecret',
  assertions: 'assertion',
}
/** The same for pools of connections to databases. */
export const DATABASES = { 'key manager database': 'apimDatabase', 'shared database': 'sharedDatabase' }

/** Caches that nothing has used are left out. Some count no lookups, and some have no limit in bytes. */
export function cacheRows(counts) {
  const rows = Object.entries(CACHES).map(([name, of]) => {
    const hits = of === 'refusedToken' ? counts.tokenRefusedHits : counts[`${of}Hits`]
    const figures = {
      entries: counts[`${of}Entries`],
      evictions: counts[`${of}Evictions`],
      bytes: counts[`${of}Bytes`],
    }
    return [name, { hits, misses: counts[`${of}Misses`], ...figures }]
  })
  return rows.filter(([, { entries = 0, hits = 0, misses = 0 }]) => entries + hits + misses > 0)
}

/** A limit below 0 is unknown. */
export function poolRows({ pools = {}, poolHistory = {}, connections = {}, counts }) {
  const rows = Object.entries(connections).map(([side, { open, limit }]) => {
    const name = `${side === 'clients' ? 'client' : 'backend'} connections`
    return [name, { used: open, limit, share: limit > 0 ? open / limit : Number.NaN }]
  })
  for (const [name, { running, max, highest, waiting }] of Object.entries(pools)) {
    const history = poolHistory[name === 'background' ? 'background' : 'mediation']
    // The count of both transports stands beside the first one.
    const refused =
      name === 'https' || history === undefined
        ? undefined
        : history.queueFull + history.memory + history.loop + history.busy
    rows.push([`workers, ${name}`, { used: running, limit: max, share: running / max, highest, waiting, refused }])
  }
  for (const [name, of] of Object.entries(DATABASES)) {
    const [used, limit, highest] = ['Used', 'Limit', 'Highest'].map(figure => counts[`${of}${figure}`])
    if (limit > 0) rows.push([name, { used, limit, share: used / limit, highest }])
  }
  return rows
}

/** Delays of the last round; `before`: undefined in the first one. */
export function threadRows(threads = {}, before = {}) {
  return Object.entries(threads).map(([name, row]) => {
    const { delayed = row.delayed, delaySeconds = row.delaySeconds } = before[name] ?? {}
    const turns = row.delayed - delayed
    return [name, { ...row, delayMs: turns > 0 ? ((row.delaySeconds - delaySeconds) / turns) * 1000 : null }]
  })
}
