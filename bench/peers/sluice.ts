/** The gateway itself, started with `sluice start` and a home that is written for the run. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Certificate } from '../certificate.ts'
import { Program, pinned } from '../program.ts'
import { writeExported } from './exported-project.ts'
import { type Peer, type PeerOptions, FAIL_OVER_SETTINGS, workersOf } from './peer.ts'

export const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** The version of a checkout of the repository. */
export function versionOf(root: string): string {
  return execFileSync('git', ['-C', root, 'describe', '--always', '--dirty'], { encoding: 'utf8' }).trim()
}

export interface BenchApi {
  readonly name: string
  readonly context: string
  /** Ports of the backends; with several the API balances load and fails over. */
  readonly ports: readonly number[]
  readonly scheme?: 'http' | 'https'
  /** Every request needs an access token. */
  readonly secured?: true
  /** Advanced policy that limits the API. */
  readonly tier?: string
  /** An exported project with operations, without or with its OpenAPI document. */
  readonly exported?: 'operations' | 'document'
  /** Further lines of api.yaml, indented as members of `data`. */
  readonly lines?: string
}

function endpoint(port: number, scheme = 'http'): string {
  return `url: ${scheme}://127.0.0.1:${port}`
}

/** Both a lost connection and a timeout suspend the endpoint. */
function replicaEndpoint(port: number): string {
  return `
      - ${endpoint(port)}
        config:
          actionSelect: fault
          actionDuration: "${FAIL_OVER_SETTINGS.timeoutMs}"
          suspendDuration: "${FAIL_OVER_SETTINGS.suspendMs}"
          suspendMaxDuration: "${FAIL_OVER_SETTINGS.suspendMs}"
          factor: "1"`
}

function apiYaml({ name, context, ports, scheme, secured, tier, lines = '' }: BenchApi): string {
  const [first, ...others] = ports
  const endpoints = others.length === 0 ? `\n      ${endpoint(first!, scheme)}` : ports.map(replicaEndpoint).join('')
  const limited = tier === undefined ? '' : `\n  apiThrottlingPolicy: ${tier}`
  return `type: api
version: v4.0.0
data:
  name: ${name}
  context: ${context}
  version: 1.0.0
  isDefaultVersion: true
  securityScheme: [${secured === true ? 'oauth2' : 'none'}]${limited}
  endpointConfig:
    endpoint_type: ${others.length === 0 ? 'http' : 'load_balance\n    failOver: "True"'}
    production_endpoints:${endpoints}
${lines}`
}

export function writeHome(home: string, apis: readonly BenchApi[]): void {
  mkdirSync(home, { recursive: true })
  writeFileSync(`${home}/deployment.toml`, '# Written by the bench: everything else is the default.\n')
  for (const api of apis) {
    const { name, context, ports, exported } = api
    if (exported !== undefined) {
      const url = `http://127.0.0.1:${ports[0]}`
      writeExported(home, { name, context, url, hasDocument: exported === 'document' })
      continue
    }
    mkdirSync(`${home}/apis/${name}`, { recursive: true })
    writeFileSync(`${home}/apis/${name}/api.yaml`, apiYaml(api))
  }
}

interface SluiceOptions {
  readonly home: string
  readonly data: string
  readonly port: number
  readonly reactors: number
  readonly cores: number | string
  /** With a certificate `port` is a TLS port. */
  readonly certificate?: Certificate | undefined
  readonly listensOnAll?: true
  /** Root of another checkout of the repository. */
  readonly root?: string
  /** Entry of a built form of the program. */
  readonly launcher?: string
  /** Modules that every thread loads first. */
  readonly imports?: readonly string[]
  readonly settings?: Readonly<Record<string, string>>
  /** Certificate of backends, to be trusted. */
  readonly backendCertificate?: Certificate | undefined
  /** Folder for CPU profiles of all threads, written when the gateway ends; undefined for none. */
  readonly profileFolder: string | undefined
}

/** Sections with a listener. All listen by default, on ports that may be taken. */
const LISTENERS = ['transport.passthru_http', 'transport.passthru_https', 'transport.ws', 'transport.wss'] as const

/** One listener, with or without TLS; all of them if the start is measured. */
function listeners({ port, certificate, listensOnAll }: SluiceOptions): Record<string, number | string> {
  const wanted = certificate === undefined ? 'transport.passthru_http' : 'transport.passthru_https'
  const settings = LISTENERS.map((section, index): [string, number | string] => {
    if (section === wanted) return [`${section}.listener.parameters.port`, port]
    if (listensOnAll === true) return [`${section}.listener.parameters.port`, port + 1 + index]
    return [`${section}.listener.enable`, 'false']
  })
  return { ...Object.fromEntries(settings), ...tlsKeyStore(certificate) }
}

function tlsKeyStore(certificate: Certificate | undefined): Record<string, string> {
  if (certificate === undefined) return {}
  const store = 'transport.passthru_https.listener.key_store'
  return { [`${store}.file_name`]: certificate.bundleFile, [`${store}.type`]: 'PEM' }
}

function trustStore({ backendCertificate }: SluiceOptions): Record<string, string> {
  if (backendCertificate === undefined) return {}
  const store = 'transport.passthru_https.sender.trust_store'
  return { [`${store}.file_name`]: backendCertificate.chainFile, [`${store}.type`]: 'PEM' }
}

/** `SLUICE_LAUNCHER` is the built form, which tests start: it starts in half the time. Imports replace source files. */
function launcherOf({ root, launcher, imports = [] }: SluiceOptions): string {
  if (launcher !== undefined) return launcher
  const isSource = root !== undefined || imports.length > 0
  return isSource ? `${root ?? ROOT}/src/launch.js` : resolve(ROOT, process.env.SLUICE_LAUNCHER ?? 'src/launch.js')
}

export function startSluice(options: SluiceOptions): Program {
  const settings = {
    'transport.passthru_http.reactors': options.reactors,
    'management.health_port': options.port + 1,
    ...listeners(options),
    ...trustStore(options),
    ...options.settings,
  }
  const profiling = options.profileFolder === undefined ? [] : ['--cpu-prof', '--cpu-prof-dir', options.profileFolder]
  const sets = Object.entries(settings).flatMap(([key, value]) => ['--set', `${key}=${value}`])
  const imports = (options.imports ?? []).flatMap(file => ['--import', file])
  const own = [launcherOf(options), 'start', '--home', options.home, '--data', options.data, ...sets]
  return new Program('sluice', pinned(options.cores, [process.execPath, ...profiling, ...imports, ...own]))
}

/** The line of a gateway that accepts requests; earlier checkouts print the word alone. */
export const READY = /^ready\b|"msg":"ready"/

/** Settings for gateways that run at the same time: the port of the key manager is the same for all. */
export const WITHOUT_KEY_MANAGER = { 'management.enable': 'false' }

export function sluice(profileFolder?: string): Peer {
  return {
    name: 'sluice',
    capabilities: ['requests', 'two-cores', 'tls', 'tls-backend', 'handshakes', 'tunnels', 'fail-over', 'chain'],
    missing: () => undefined,
    version: () => versionOf(ROOT),
    async start(options: PeerOptions) {
      const home = `${options.folder}/home`
      const { port, certificate, backendCertificate } = options
      const scheme = backendCertificate === undefined ? 'http' : 'https'
      const plain = [
        { name: 'Bench', context: '/bench', ports: [options.downloadPort], scheme },
        { name: 'Upload', context: '/upload', ports: [options.uploadPort] },
        ...(options.capability === 'tunnels' ? [{ name: 'Echo', context: '/ws', ports: [options.echoPort] }] : []),
        ...(options.capability === 'fail-over'
          ? [{ name: 'Replicas', context: '/replicas', ports: options.replicaPorts }]
          : []),
      ] as const
      writeHome(home, options.capability === 'chain' ? [chainProject(options)] : plain)
      const data = `${options.folder}/data`
      const tls = { certificate, backendCertificate }
      const settings = options.capability === 'chain' ? WITHOUT_KEY_MANAGER : {}
      const { workers, cores } = workersOf(options.capability)
      const common = { home, data, port, ...tls, reactors: workers, cores, profileFolder }
      const program = startSluice({ ...common, settings })
      await program.waitForLine(READY)
      return program
    },
  }
}

/** The exported project for scenarios of the filter chain. */
export function chainProject({ downloadPort }: PeerOptions): BenchApi {
  return { name: 'Chain', context: '/chain', ports: [downloadPort], exported: 'document' }
}
