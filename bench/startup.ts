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

function sketches(count: number, backendPort: number): ApiSketch[] {
  return Array.from({ length: count }, (_, index) => {
    return { name: `Api${index}`, context: `/api/${index}`, ports: [backendPort] }
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

/** Homes of ten and of a thousand APIs, each started once before anything is timed but the very first start. */
export class StartupSites {
  readonly #ten: Site
  readonly #thousand: Site
  #firstReadyMs: number | undefined

  constructor(folder: string, port: number, backendPort: number) {
    this.#ten = { home: `${folder}/ten/home`, data: `${folder}/ten/data`, port }
    this.#thousand = { home: `${folder}/thousand/home`, data: `${folder}/thousand/data`, port }
    mkdirSync(folder, { recursive: true })
    writeHome(this.#ten.home, sketches(10, backendPort))
    writeHome(this.#thousand.home, sketches(1000, backendPort))
  }

  async prepare(): Promise<void> {
    this.#firstReadyMs = await readyAfterMs(this.#ten)
    await readyAfterMs(this.#thousand)
  }

  async round(): Promise<Sample> {
    let atRest = { rssMiB: Number.NaN, pssMiB: Number.NaN }
    const readyMs = await readyAfterMs(this.#ten, async pid => {
      await sleep(REST_MS)
      atRest = memory(pid)
    })
    const readyThousandMs = await readyAfterMs(this.#thousand)
    return { readyMs, readyThousandMs, ...atRest, firstReadyMs: this.#firstReadyMs ?? Number.NaN }
  }
}
