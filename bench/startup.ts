/** Measures the time from start to ready with few and with many APIs, and the memory of the gateway without traffic. */
import { mkdirSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { buildProgram } from '../test/harness/built-program.ts'
import type { Sample } from './metric.ts'
import { type BenchApi, READY, ROOT, startSluice, writeHome } from './peers/sluice.ts'
import { memory } from './process-tree.ts'
import { LOAD_CORE, PROXY_CORE } from './program.ts'

const REACTORS = 2
/** Time without traffic before memory is measured. */
const IDLE_MS = 4500
/** Both cores: nothing else runs during a start, and threads start in parallel. */
const CORES = `${PROXY_CORE},${LOAD_CORE}`

/** The APIs of a home, and the metric of the time that it takes to start with them. */
interface StartupCase {
  readonly metric: 'readyMs' | 'readyThousandMs' | 'readyExportedMs' | 'readyDocumentedMs'
  readonly apis: number
  readonly exported?: BenchApi['exported']
}

/** Forms of the program by the name of their row. */
export const STARTUP_FORMS: Readonly<Record<string, () => string>> = {
  sluice: () => `${ROOT}/src/launch.js`,
  'sluice-package': buildProgram,
}

const STARTUP_CASES: readonly StartupCase[] = [
  { metric: 'readyMs', apis: 10 },
  { metric: 'readyThousandMs', apis: 1000 },
  { metric: 'readyExportedMs', apis: 1000, exported: 'operations' },
  { metric: 'readyDocumentedMs', apis: 1000, exported: 'document' },
]

function benchApis({ apis, exported }: StartupCase, backendPort: number): BenchApi[] {
  return Array.from({ length: apis }, (_, index) => {
    const api = { name: `Api${index}`, context: `/api/${index}`, ports: [backendPort] }
    return exported === undefined ? api : { ...api, exported }
  })
}

interface Installation {
  readonly metric: StartupCase['metric']
  readonly home: string
  readonly data: string
  readonly port: number
  readonly launcher: string
}

/** Milliseconds from start to ready; `whenReady` runs before the gateway is stopped. */
async function readyAfterMs(
  { home, data, port, launcher }: Installation,
  whenReady?: (pid: number) => Promise<void>,
): Promise<number> {
  const startMs = performance.now()
  const program = startSluice({
    home,
    data,
    port,
    launcher,
    listensOnAll: true,
    reactors: REACTORS,
    cores: CORES,
    profileFolder: undefined,
  })
  try {
    const { atMs } = await program.waitForLine(READY)
    await whenReady?.(program.pid)
    return atMs - startMs
  } finally {
    await program.stop()
  }
}

/** One home and data folder for each case. */
export class StartupInstallations {
  readonly #installations: readonly Installation[]
  #firstReadyMs: number | undefined

  /** `launcher`: entry of the form of the program. */
  constructor(folder: string, port: number, backendPort: number, launcher: string) {
    this.#installations = STARTUP_CASES.map(startupCase => {
      const { metric } = startupCase
      const home = `${folder}/${metric}/home`
      mkdirSync(home, { recursive: true })
      writeHome(home, benchApis(startupCase, backendPort))
      return { metric, home, data: `${folder}/${metric}/data`, port, launcher }
    })
  }

  /** Starts each installation once, because a first start writes data and fills caches; times the very first start. */
  async prepare(): Promise<void> {
    for (const installation of this.#installations) {
      const tookMs = await readyAfterMs(installation)
      this.#firstReadyMs ??= tookMs
    }
  }

  async round(): Promise<Sample> {
    let sample: Sample = { firstReadyMs: this.#firstReadyMs ?? Number.NaN }
    for (const installation of this.#installations) {
      const { metric } = installation
      const tookMs = await readyAfterMs(installation, async pid => {
        if (metric !== 'readyMs') return
        await sleep(IDLE_MS)
        sample = { ...sample, ...memory(pid) }
      })
      sample = { ...sample, [metric]: tookMs }
    }
    return sample
  }
}
