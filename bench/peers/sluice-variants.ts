/** Variants of the gateway for paired scenarios: without its filter chain, an earlier state, many APIs, with tokens. */
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { API_COUNTS, contextOf } from '../paired/paired-scenarios.ts'
import { PROXY_CORE, type Program } from '../program.ts'
import { CLIENT_ID, ISSUER, tokenIssuer } from '../token-issuer.ts'
import { writeExported } from './exported-project.ts'
import type { Peer, PeerOptions } from './peer.ts'
import {
  type BenchApi,
  chainProject,
  READY,
  ROOT,
  startSluice,
  versionOf,
  WITHOUT_KEY_MANAGER,
  writeHome,
} from './sluice.ts'

/** Long, because 10,000 projects are read on one processor. */
const READY_TIMEOUT_MS = 180_000
const WITHOUT_CHAIN = fileURLToPath(new URL('without-chain.js', import.meta.url))

type VariantOptions = Partial<Parameters<typeof startSluice>[0]>

/** Starts one reactor with the home in the peer's folder, without the key manager, whose port all gateways share. */
export async function startVariant({ folder, port }: PeerOptions, options: VariantOptions = {}): Promise<Program> {
  const defaults = { home: `${folder}/home`, data: `${folder}/data`, port, reactors: 1, cores: PROXY_CORE }
  const settings = { ...WITHOUT_KEY_MANAGER, ...options.settings }
  const program = startSluice({ ...defaults, profileFolder: undefined, ...options, settings })
  await program.waitForLine(READY, READY_TIMEOUT_MS)
  return program
}

/** The pass-through alone: the same code, but APIs without filters, resources and CORS. */
const sluiceCore: Peer = {
  name: 'sluice-core',
  capabilities: ['chain'],
  missing: () => undefined,
  version: () => versionOf(ROOT),
  async start(options) {
    writeHome(`${options.folder}/home`, [{ name: 'Chain', context: '/chain', ports: [options.downloadPort] }])
    const program = await startVariant(options, {
      imports: [WITHOUT_CHAIN],
      settings: { 'apim.cors.enable': 'false' },
    })
    if (program.output.includes('runs without a filter chain')) return program
    await program.stop()
    throw new Error('still has a filter chain: peers/without-chain.js must name the file that builds it')
  },
}

/** The same as `sluice`; the ratio of the two is the noise of the measurement. */
const sluiceAgain: Peer = {
  name: 'sluice-again',
  capabilities: ['chain'],
  onlyWhenNamed: true,
  missing: () => undefined,
  version: () => versionOf(ROOT),
  start(options) {
    writeHome(`${options.folder}/home`, [chainProject(options)])
    return startVariant(options)
  },
}

/** Another checkout of the repository, with the same project as `sluice`. */
export function sluiceBefore(root: string): Peer {
  return {
    name: 'sluice-before',
    capabilities: ['chain'],
    missing: () => (existsSync(`${root}/src/launch.js`) ? undefined : `${root} is not a checkout of this repository`),
    version: () => `sluice-before ${versionOf(root)}`,
    start(options) {
      writeHome(`${options.folder}/home`, [chainProject(options)])
      return startVariant(options, { root })
    },
  }
}

function sluiceWithApis(name: string, count: number): Peer {
  return {
    name,
    capabilities: ['apis'],
    missing: () => undefined,
    version: () => versionOf(ROOT),
    start(options) {
      const home = `${options.sharedFolder}/${name}`
      if (!existsSync(home)) writeHome(home, benchApis(count, options.downloadPort))
      mkdirSync(options.folder, { recursive: true })
      symlinkSync(home, `${options.folder}/home`)
      return startVariant(options)
    },
  }
}

function benchApis(count: number, downloadPort: number): BenchApi[] {
  return Array.from({ length: count }, (_, api) => {
    const context = contextOf(api)
    return { name: `Api${context.slice(-5)}`, context, ports: [downloadPort], exported: 'operations' }
  })
}

/** One issuer, whose tokens belong to one client. */
function deploymentToml(keySetUrl: string): string {
  return `# Written by the bench: everything else is the default.
[[apim.jwt.issuer]]
name = "${ISSUER}"
"jwks.url" = "${keySetUrl}"
algorithms = ["RS256"]
`
}

/** Tiers of the application and of its subscription, and the API that it is for. */
interface Tiers {
  readonly api?: string
  readonly application?: string
  readonly subscription?: string
}

function applicationYaml({
  api = 'Chain:1.0.0',
  application = 'Unlimited',
  subscription = 'Unlimited',
}: Tiers): string {
  return `name: Bench
tier: ${application}
keys:
  - consumerKey: ${CLIENT_ID}
    issuer: ${ISSUER}
subscriptions:
  - api: ${api}
    tier: ${subscription}
`
}

/** Adds an issuer of tokens, and an application with a subscription to one API, by default `Chain`. */
export function writeIssuer(home: string, keySetUrl: string, tiers: Tiers = {}): void {
  mkdirSync(`${home}/applications`, { recursive: true })
  writeFileSync(`${home}/deployment.toml`, deploymentToml(keySetUrl))
  writeFileSync(`${home}/applications/bench.yaml`, applicationYaml(tiers))
}

/** A home with an issuer, an application and one exported API; `secured`: its operations require a token. */
export function writeSecuredHome(home: string, backendPort: number, keySetUrl: string, secured: boolean): void {
  writeIssuer(home, keySetUrl)
  const url = `http://127.0.0.1:${backendPort}`
  writeExported(home, { name: 'Chain', context: '/chain', url, hasDocument: false, secured })
}

function sluiceWithTokens(name: string, secured: boolean, settings: Readonly<Record<string, string>>): Peer {
  return {
    name,
    capabilities: ['secured'],
    missing: () => undefined,
    version: () => versionOf(ROOT),
    async start(options) {
      writeSecuredHome(`${options.folder}/home`, options.downloadPort, await tokenIssuer().keySetUrl(), secured)
      return startVariant(options, { settings })
    },
  }
}

/** The project of one API without operations: the proxies beside the gateway have one location, too. */
function sluiceHotPath(name: string, secured: boolean, logs: boolean): Peer {
  return {
    name,
    capabilities: ['hot-path'],
    missing: () => undefined,
    version: () => versionOf(ROOT),
    async start(options) {
      const api = { name: 'Chain', context: '/bench', ports: [options.downloadPort] }
      writeHome(`${options.folder}/home`, [secured ? { ...api, secured } : api])
      if (secured) writeIssuer(`${options.folder}/home`, await tokenIssuer().keySetUrl())
      return startVariant(options, logs ? { settings: { 'access_log.target': 'file' } } : {})
    },
  }
}

export const SLUICE_VARIANTS: readonly Peer[] = [
  sluiceCore,
  sluiceAgain,
  sluiceWithTokens('sluice-open', false, {}),
  sluiceWithTokens('sluice-secured', true, {}),
  sluiceWithTokens('sluice-secured-log', true, { 'access_log.target': 'file' }),
  sluiceHotPath('sluice-plain', false, false),
  sluiceHotPath('sluice-log', false, true),
  sluiceHotPath('sluice-jwt', true, false),
  sluiceHotPath('sluice-jwt-log', true, true),
  ...Object.entries(API_COUNTS).map(([name, count]) => sluiceWithApis(name, count)),
]
