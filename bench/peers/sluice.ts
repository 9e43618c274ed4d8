/** The gateway itself, started the way an operator starts it, from a home written for the run. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Certificate } from '../certificate.ts'
import { PROXY_CORE, Program, pinned } from '../program.ts'
import { writeExported } from './exported-project.ts'
import { type Peer, type Place, TWINS } from './peer.ts'

export const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** The version of a state of the repository. */
export function stateOf(root: string): string {
  return execFileSync('git', ['-C', root, 'describe', '--always', '--dirty'], { encoding: 'utf8' }).trim()
}

export interface ApiSketch {
  readonly name: string
  readonly context: string
  /** Of its backends on this machine; with several the API balances its load, and fails over. */
  readonly ports: readonly number[]
  readonly scheme?: 'http' | 'https'
  /** As an exported project with operations, with or without its OpenAPI document. */
  readonly exported?: 'operations' | 'document'
}

function endpoint(port: number, scheme = 'http'): string {
  return `url: ${scheme}://127.0.0.1:${port}`
}

/** Fails over to the other one on a lost connection and on a timeout alike. */
function twin(port: number): string {
  return `
      - ${endpoint(port)}
        config:
          actionSelect: fault
          actionDuration: "${TWINS.timeoutMs}"
          suspendDuration: "${TWINS.suspendMs}"
          suspendMaxDuration: "${TWINS.suspendMs}"
          factor: "1"`
}

function definition({ name, context, ports, scheme }: ApiSketch): string {
  const [first, ...others] = ports
  const endpoints = others.length === 0 ? `\n      ${endpoint(first!, scheme)}` : ports.map(twin).join('')
  return `type: api
version: v4.0.0
data:
  name: ${name}
  context: ${context}
  version: 1.0.0
  isDefaultVersion: true
  securityScheme: [none]
  endpointConfig:
    endpoint_type: ${others.length === 0 ? 'http' : 'load_balance\n    failOver: "True"'}
    production_endpoints:${endpoints}
`
}

export function writeHome(home: string, apis: readonly ApiSketch[]): void {
  mkdirSync(home, { recursive: true })
  writeFileSync(`${home}/deployment.toml`, '# Written by the bench: everything else is the default.\n')
  for (const api of apis) {
    const { name, context, ports, exported } = api
    if (exported !== undefined) {
      const url = `http://127.0.0.1:${ports[0]}`
      writeExported(home, { name, context, url, documented: exported === 'document' })
      continue
    }
    mkdirSync(`${home}/apis/${name}`, { recursive: true })
    writeFileSync(`${home}/apis/${name}/api.yaml`, definition(api))
  }
}

interface SluiceOptions {
  readonly home: string
  readonly data: string
  readonly port: number
  readonly reactors: number
  readonly cores: number | string
  /** For the TLS port, which is then the one at `port`. */
  readonly certificate?: Certificate | undefined
  readonly listensOnAll?: true
  /** Another state of the repository. */
  readonly root?: string
  /** Modules that every thread of it loads first. */
  readonly imports?: readonly string[]
  readonly settings?: Readonly<Record<string, string>>
  /** Trusted where backends show it. */
  readonly backendCertificate?: Certificate | undefined
  /** Folder for the profiles of all threads, written when the gateway ends; undefined for none. */
  readonly profileFolder: string | undefined
}

/** Sections with a listener. The default of each is to listen, on a port that somebody else may hold. */
const LISTENERS = ['transport.passthru_http', 'transport.passthru_https', 'transport.ws', 'transport.wss'] as const

/** With a certificate only the TLS port, without one only the plain one; all of them where the start is measured. */
function listeners({ port, certificate, listensOnAll }: SluiceOptions): Record<string, number | string> {
  const wanted = certificate === undefined ? 'transport.passthru_http' : 'transport.passthru_https'
  const settings = LISTENERS.map((section, index): [string, number | string] => {
    if (section === wanted) return [`${section}.listener.parameters.port`, port]
    if (listensOnAll === true) return [`${section}.listener.parameters.port`, port + 1 + index]
    return [`${section}.listener.enable`, 'false']
  })
  return { ...Object.fromEntries(settings), ...shown(certificate) }
}

function shown(certificate: Certificate | undefined): Record<string, string> {
  if (certificate === undefined) return {}
  const store = 'transport.passthru_https.listener.key_store'
  return { [`${store}.file_name`]: certificate.bundleFile, [`${store}.type`]: 'PEM' }
}

function trust({ backendCertificate }: SluiceOptions): Record<string, string> {
  if (backendCertificate === undefined) return {}
  const store = 'transport.passthru_https.sender.trust_store'
  return { [`${store}.file_name`]: backendCertificate.chainFile, [`${store}.type`]: 'PEM' }
}

export function startSluice(options: SluiceOptions): Program {
  const settings = {
    'transport.passthru_http.reactors': options.reactors,
    'management.health_port': options.port + 1,
    ...listeners(options),
    ...trust(options),
    ...options.settings,
  }
  const profiling = options.profileFolder === undefined ? [] : ['--cpu-prof', '--cpu-prof-dir', options.profileFolder]
  const sets = Object.entries(settings).flatMap(([key, value]) => ['--set', `${key}=${value}`])
  const imports = (options.imports ?? []).flatMap(file => ['--import', file])
  const own = [
    `${options.root ?? ROOT}/src/launch.js`,
    'start',
    '--home',
    options.home,
    '--data',
    options.data,
    ...sets,
  ]
  return new Program('sluice', pinned(options.cores, [process.execPath, ...profiling, ...imports, ...own]))
}

export function sluice(profileFolder?: string): Peer {
  return {
    name: 'sluice',
    abilities: ['requests', 'tls', 'tls-backend', 'handshakes', 'tunnels', 'fail-over', 'chain'],
    missing: () => undefined,
    version: () => stateOf(ROOT),
    async start(place: Place) {
      const home = `${place.folder}/home`
      const { port, certificate, backendCertificate } = place
      const scheme = backendCertificate === undefined ? 'http' : 'https'
      const plain = [
        { name: 'Bench', context: '/bench', ports: [place.downloadPort], scheme },
        { name: 'Upload', context: '/upload', ports: [place.uploadPort] },
        ...(place.ability === 'tunnels' ? [{ name: 'Echo', context: '/ws', ports: [place.echoPort] }] : []),
        ...(place.ability === 'fail-over' ? [{ name: 'Twins', context: '/twins', ports: place.twinPorts }] : []),
      ] as const
      writeHome(home, place.ability === 'chain' ? [chainProject(place)] : plain)
      const data = `${place.folder}/data`
      const tls = { certificate, backendCertificate }
      const program = startSluice({ home, data, port, ...tls, reactors: 1, cores: PROXY_CORE, profileFolder })
      await program.line(/^ready\b/)
      return program
    },
  }
}

/** What `sluice start` serves of the chain. */
export function chainProject({ downloadPort }: Place): ApiSketch {
  return { name: 'Chain', context: '/chain', ports: [downloadPort], exported: 'document' }
}
