/** How soon the gateway is ready, with few and with many APIs, and what it takes with nothing to do. */
import { mkdirSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Sample } from './metric.ts'
import { type ApiSketch, startSluice, writeHome } from './peers/sluice.ts'
import { memory } from './process-tree.ts'
import { LOAD_CORE, PROXY_CORE } from './program.ts'

const REACTORS = 2
const REST_MS = 3000
/** Nothing else runs meanwhile, and threads start side by side. */
const CORES = `${PROXY_CORE},${LOAD_CORE}`

/** What a home holds, and under which name the time that it takes is shown. */
interface Holding {
  readonly metric: 'readyMs' | 'readyThousandMs' | 'readyExportedMs' | 'readyDocumentedMs'
  readonly apis: number
  readonly exported?: ApiSketch['exported']
}

const HOLDINGS: readonly Holding[] = [
  { metric: 'readyMs', apis: 10 },
  { metric: 'readyThousandMs', apis: 1000 },
  { metric: 'readyExportedMs', apis: 1000, exported: 'operations' },
  { metric: 'readyDocumentedMs', apis: 1000, exported: 'document' },
]

function sketches({ apis, exported }: Holding, backendPort: number): ApiSketch[] {
  return Array.from({ length: apis }, (_, index) => {
    const sketch = { name: `Api${index}`, context: `/api/${index}`, ports: [backendPort] }
    return exported === undefined ? sketch : { ...sketch, exported }
  })
}

interface Site {
  readonly home: string
  readonly data: string
  readonly port: number
}

async function readyAfterMs(site: Site, rest?: (pid: number) => Promise<void>): Promise<number> {
  const startMs = performance.now()
  const program = startSluice({
    ...site,
    listensOnAll: true,
    reactors: REACTORS,
    cores: CORES,
    profileFolder: undefined,
  })
  try {
    const { atMs } = await program.line(/^ready\b/)
    await rest?.(program.pid)
    return atMs - startMs
  } finally {
    await program.stop()
  }
}

/** A home for each holding, started once before anything is timed but the very first start. */
export class StartupSites {
  readonly #sites: readonly (readonly [Holding, Site])[]
  #firstReadyMs: number | undefined

  constructor(folder: string, port: number, backendPort: number) {
    this.#sites = HOLDINGS.map(holding => {
      const site = { home: `${folder}/${holding.metric}/home`, data: `${folder}/${holding.metric}/data`, port }
      mkdirSync(site.home, { recursive: true })
      writeHome(site.home, sketches(holding, backendPort))
      return [holding, site]
    })
  }

  async prepare(): Promise<void> {
    for (const [, site] of this.#sites) {
      const took = await readyAfterMs(site)
      this.#firstReadyMs ??= took
    }
  }

  async round(): Promise<Sample> {
    let sample: Sample = { firstReadyMs: this.#firstReadyMs ?? Number.NaN }
    for (const [{ metric }, site] of this.#sites) {
      const isFirst = metric === 'readyMs'
      const took = await readyAfterMs(site, async pid => {
        if (!isFirst) return
        await sleep(REST_MS)
        sample = { ...sample, ...memory(pid) }
      })
      sample = { ...sample, [metric]: took }
    }
    return sample
  }
}
