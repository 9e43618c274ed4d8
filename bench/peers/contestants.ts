/** The gateway as it takes part in contests: without its chain, as it was before, and with many APIs. */
import { existsSync, mkdirSync, symlinkSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { API_COUNTS, contextOf } from '../contest/contests.ts'
import { PROXY_CORE, type Program } from '../program.ts'
import type { Peer, Place } from './peer.ts'
import { SECURED } from './secured.ts'
import { chainProject, ROOT, startSluice, stateOf, writeHome } from './sluice.ts'

/** 10,000 projects are read on one processor. */
const READY_PATIENCE_MS = 180_000
const WITHOUT_CHAIN = fileURLToPath(new URL('without-chain.js', import.meta.url))

type Further = Partial<Parameters<typeof startSluice>[0]>

/** One reactor, from the home in the peer's folder. */
async function started({ folder, port }: Place, further: Further = {}): Promise<Program> {
  const where = { home: `${folder}/home`, data: `${folder}/data`, port, reactors: 1, cores: PROXY_CORE }
  const program = startSluice({ ...where, profileFolder: undefined, ...further })
  await program.line(/^ready\b/, READY_PATIENCE_MS)
  return program
}

/** The pass-through alone: the same code, but that APIs have no handlers, no resources and no CORS. */
const sluiceCore: Peer = {
  name: 'sluice-core',
  abilities: ['chain'],
  missing: () => undefined,
  version: () => stateOf(ROOT),
  async start(place) {
    writeHome(`${place.folder}/home`, [{ name: 'Chain', context: '/chain', ports: [place.downloadPort] }])
    const program = await started(place, { imports: [WITHOUT_CHAIN], settings: { 'apim.cors.enable': 'false' } })
    if (program.output.includes('runs without a chain')) return program
    await program.stop()
    throw new Error('has a chain: peers/without-chain.js does not find it any more')
  },
}

/** What `sluice` is, once more: what differs between them comes of nothing. */
const sluiceAgain: Peer = {
  name: 'sluice-again',
  abilities: ['chain'],
  onlyWhenNamed: true,
  missing: () => undefined,
  version: () => stateOf(ROOT),
  start(place) {
    writeHome(`${place.folder}/home`, [chainProject(place)])
    return started(place)
  },
}

/** Another state of the repository, with the same project as `sluice` has. */
export function sluiceBefore(root: string): Peer {
  return {
    name: 'sluice-before',
    abilities: ['chain'],
    missing: () => (existsSync(`${root}/src/launch.js`) ? undefined : `${root} is no state of this repository`),
    version: () => `sluice-before ${stateOf(root)}`,
    start(place) {
      writeHome(`${place.folder}/home`, [chainProject(place)])
      return started(place, { root })
    },
  }
}

function sluiceWithApis(name: string, count: number): Peer {
  return {
    name,
    abilities: ['apis'],
    missing: () => undefined,
    version: () => stateOf(ROOT),
    start(place) {
      const home = `${place.shared}/${name}`
      if (!existsSync(home)) writeHome(home, sketches(count, place.downloadPort))
      mkdirSync(place.folder, { recursive: true })
      symlinkSync(home, `${place.folder}/home`)
      return started(place)
    },
  }
}

function sketches(count: number, downloadPort: number): Parameters<typeof writeHome>[1] {
  return Array.from({ length: count }, (_, api) => {
    const context = contextOf(api)
    return { name: `Api${context.slice(-5)}`, context, ports: [downloadPort], exported: 'operations' }
  })
}

export const CONTESTANTS: readonly Peer[] = [
  sluiceCore,
  sluiceAgain,
  ...SECURED,
  ...Object.entries(API_COUNTS).map(([name, count]) => sluiceWithApis(name, count)),
]
