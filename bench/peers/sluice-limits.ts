/** Variants of the gateway whose requests are limited: by several levels, for many addresses, and beyond a limit. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { KEY_COUNTS, LEVEL_COUNTS } from '../paired/limit-scenarios.ts'
import { tokenIssuer } from '../token-issuer.ts'
import type { Capability } from '../scenarios.ts'
import type { Peer, PeerOptions } from './peer.ts'
import { ROOT, versionOf, writeHome } from './sluice.ts'
import { startVariant, writeIssuer } from './sluice-variants.ts'

/** A limit that no run reaches. */
const UNREACHED = 1_000_000_000
/** Counters in use at the same time; one more is for the request that verifies a peer. */
const COUNTERS_MAX = 2_000_000

type Level = 'advanced' | 'subscription' | 'application' | 'custom'

function writePolicy(home: string, level: Level, name: string, limit: number, lines = ''): void {
  mkdirSync(`${home}/policies/${level}`, { recursive: true })
  // A month, so that no window ends during a run.
  const quota = `{ timeUnit: months, unitTime: 1, requestCount: ${limit} }`
  const text = `policyName: ${name}\n${lines}defaultLimit: { type: REQUESTCOUNTLIMIT, requestCount: ${quota} }\n`
  writeFileSync(`${home}/policies/${level}/${name}.yaml`, text)
}

/** A home with one secured API that none, one (subscription) or five levels limit. */
export function writeLimitedHome(home: string, backendPort: number, keySetUrl: string, levels: number): void {
  const api = { name: 'Chain', context: '/bench', ports: [backendPort], secured: true } as const
  writeHome(home, [levels > 1 ? { ...api, tier: 'ApiLimit' } : api])
  const isLimited = levels > 0
  const application = levels > 1 ? 'ApplicationLimit' : 'Unlimited'
  writeIssuer(home, keySetUrl, { application, subscription: isLimited ? 'SubscriptionLimit' : 'Unlimited' })
  if (!isLimited) return
  const burst = levels > 1 ? `rateLimitCount: ${UNREACHED}\nrateLimitTimeUnit: min\n` : ''
  writePolicy(home, 'subscription', 'SubscriptionLimit', UNREACHED, burst)
  if (levels > 1) {
    writePolicy(home, 'advanced', 'ApiLimit', UNREACHED)
    writePolicy(home, 'application', 'ApplicationLimit', UNREACHED)
    writePolicy(home, 'custom', 'CustomLimit', UNREACHED, 'keyTemplate: $userId:$apiContext\n')
  }
}

/** A home whose open API counts its callers by address. */
export function writeAddressHome(home: string, backendPort: number): void {
  writeHome(home, [{ name: 'Chain', context: '/bench', ports: [backendPort] }])
  writePolicy(home, 'subscription', 'AddressLimit', UNREACHED)
}

export const ADDRESS_SETTINGS: Readonly<Record<string, string>> = {
  'apim.throttling.unauthenticated_tier': 'AddressLimit',
  'apim.throttling.counters.max': String(COUNTERS_MAX),
  'transport.passthru_http.trusted_proxies': '["127.0.0.1"]',
}

/** A home with a limit of one request: of the open API, or of the subscription to the secured one. */
function writeRefusingHome(home: string, backendPort: number, keySetUrl: string, secured: boolean): void {
  const api = { name: 'Chain', context: '/bench', ports: [backendPort] }
  writeHome(home, [secured ? { ...api, secured } : { ...api, tier: 'OneRequest' }])
  writePolicy(home, secured ? 'subscription' : 'advanced', 'OneRequest', 1)
  if (secured) writeIssuer(home, keySetUrl, { subscription: 'OneRequest' })
}

type WriteHome = (home: string, options: PeerOptions, keySetUrl: string) => void

function limited(name: string, capability: Capability, write: WriteHome, settings = {}): Peer {
  return {
    name,
    capabilities: [capability],
    missing: () => undefined,
    version: () => versionOf(ROOT),
    async start(options) {
      write(`${options.folder}/home`, options, await tokenIssuer().keySetUrl())
      return startVariant(options, { settings })
    },
  }
}

export const LIMITED_SLUICE: readonly Peer[] = [
  ...Object.entries(LEVEL_COUNTS).map(([name, levels]) =>
    limited(name, 'limits', (home, { downloadPort }, url) => writeLimitedHome(home, downloadPort, url, levels)),
  ),
  ...Object.keys(KEY_COUNTS).map(name =>
    limited(name, 'limit-keys', (home, { downloadPort }) => writeAddressHome(home, downloadPort), ADDRESS_SETTINGS),
  ),
  ...[false, true].map(secured =>
    limited(secured ? 'sluice-refused-jwt' : 'sluice-refused', 'refused', (home, { downloadPort }, url) =>
      writeRefusingHome(home, downloadPort, url, secured),
    ),
  ),
]
