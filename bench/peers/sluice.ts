/** The gateway itself, started the way an operator starts it, from a home written for the run. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { PROXY_CORE, Program, pinned } from '../program.ts'
import type { Peer, Place } from './peer.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

export interface ApiSketch {
  readonly name: string
  readonly context: string
  readonly port: number
}

function definition({ name, context, port }: ApiSketch): string {
  return `type: api
version: v4.0.0
data:
  name: ${name}
  context: ${context}
  version: 1.0.0
  isDefaultVersion: true
  endpointConfig:
    endpoint_type: http
    production_endpoints:
      url: http://127.0.0.1:${port}
`
}

export function writeHome(home: string, apis: readonly ApiSketch[]): void {
  mkdirSync(home, { recursive: true })
  writeFileSync(`${home}/deployment.toml`, '# Written by the bench: everything else is the default.\n')
  for (const api of apis) {
    mkdirSync(`${home}/apis/${api.name}`, { recursive: true })
    writeFileSync(`${home}/apis/${api.name}/api.yaml`, definition(api))
  }
}

interface SluiceOptions {
  readonly home: string
  readonly data: string
  readonly port: number
  readonly reactors: number
  readonly cores: number | string
  /** Folder for the profiles of all threads, written when the gateway ends; undefined for none. */
  readonly profileFolder: string | undefined
}

export function startSluice(options: SluiceOptions): Program {
  const settings = {
    'transport.passthru_http.listener.parameters.port': options.port,
    'transport.passthru_http.reactors': options.reactors,
    'management.health_port': options.port + 1,
  }
  const profiling = options.profileFolder === undefined ? [] : ['--cpu-prof', '--cpu-prof-dir', options.profileFolder]
  const sets = Object.entries(settings).flatMap(([key, value]) => ['--set', `${key}=${value}`])
  const own = [`${ROOT}src/launch.js`, 'start', '--home', options.home, '--data', options.data, ...sets]
  return new Program('sluice', pinned(options.cores, [process.execPath, ...profiling, ...own]))
}

export function sluice(profileFolder?: string): Peer {
  return {
    name: 'sluice',
    missing: () => undefined,
    version: () => execFileSync('git', ['-C', ROOT, 'describe', '--always', '--dirty'], { encoding: 'utf8' }).trim(),
    async start(place: Place) {
      const home = `${place.folder}/home`
      writeHome(home, [
        { name: 'Bench', context: '/bench', port: place.downloadPort },
        { name: 'Upload', context: '/upload', port: place.uploadPort },
      ])
      const data = `${place.folder}/data`
      const program = startSluice({ home, data, port: place.port, reactors: 1, cores: PROXY_CORE, profileFolder })
      await program.line(/^ready\b/)
      return program
    },
  }
}
