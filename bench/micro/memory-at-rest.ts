/**
 * Resident memory of a gateway without traffic, by part: `npx node bench/micro/memory-at-rest.ts [REACTORS,...]`, as a
 * package and from the sources, and of a bare process with one thread more than reactors, the floor. Ten open APIs, the
 * plain listener and the management listener; the least of three starts, behind one that fills caches. Linux alone.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setTimeout as sleep } from 'node:timers/promises'
import { buildProgram } from '../../test/harness/built-program.ts'
import { MeasuredTable } from '../measured-table.ts'
import { Program } from '../program.ts'
import { READY, ROOT, startSluice, writeHome } from '../peers/sluice.ts'

const ROUNDS = 3
/** Behind the collections and the trim of malloc (`src/runtime/heap-trim.ts`). */
const REST_MS = 4000
const REST_PER_REACTOR_MS = 50
const MIB_IN_KIB = 1024
/** Alignment of the arenas of glibc. */
const ARENA_BYTES = 64 * 1024 * 1024
/** Pages of V8 have this alignment, and are multiples of it up to large objects. */
const PAGE_BYTES = 256 * 1024
const PAGES_BYTES_MAX = 1024 * 1024
/** Addresses of the file of Node itself are below; its code that V8 maps once more is above. */
const FILE_END = 0x1_0000_0000

const PARTS = ['file of Node, libraries', 'builtins once more', 'heaps', 'malloc', 'compiled code', 'other'] as const
type Part = (typeof PARTS)[number]
type Parts = Partial<Record<Part, number>>

function partOf(start: number, bytes: number, mode: string, name: string): Part {
  if (name.startsWith('/'))
    return mode.includes('x') && name.endsWith('/node') && start > FILE_END
      ? 'builtins once more'
      : 'file of Node, libraries'
  if (name === '[heap]') return 'malloc'
  if (name !== '') return 'other'
  if (mode.includes('x')) return 'compiled code'
  if (start % ARENA_BYTES === 0 && bytes < ARENA_BYTES) return 'malloc'
  return start % PAGE_BYTES === 0 && bytes % PAGE_BYTES === 0 && bytes <= PAGES_BYTES_MAX ? 'heaps' : 'other'
}

/** Resident MiB by part. */
function residentOf(pid: number): Parts {
  const parts: Parts = {}
  for (const mapping of readFileSync(`/proc/${pid}/smaps`, 'latin1').split(/^(?=[0-9a-f]+-[0-9a-f]+ )/m)) {
    const [, from, to, mode, name] = /^([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \S+ *(.*)$/m.exec(mapping)!
    const start = Number.parseInt(from!, 16)
    const part = partOf(start, Number.parseInt(to!, 16) - start, mode!, name!)
    parts[part] = (parts[part] ?? 0) + Number(/^Rss: +(\d+)/m.exec(mapping)![1]) / MIB_IN_KIB
  }
  return parts
}

const sumOf = (parts: Parts): number => Object.values(parts).reduce((sum, mib) => sum + mib, 0)

const folder = mkdtempSync(join(tmpdir(), 'sluice-memory-'))
const home = join(folder, 'home')
writeHome(
  home,
  Array.from({ length: 10 }, (_, index) => ({ name: `Api${index}`, context: `/api/${index}`, ports: [9] })),
)

/** Three ports from here on are free, very likely: scenarios use those below, and the system gives out those above. */
const portOfRun = (): number => 24_000 + Math.floor(Math.random() * 8000)

function startGateway(reactors: number, launcher: string): Program {
  const port = portOfRun()
  const settings = { 'management.port': String(port + 2) }
  const where = { home, data: join(folder, 'data'), port, launcher, cores: '0,1', profileFolder: undefined }
  return startSluice({ ...where, reactors, settings })
}

function startBare(reactors: number): Program {
  const script = fileURLToPath(new URL('bare-threads.js', import.meta.url))
  return new Program('bare threads', [process.execPath, script, String(reactors + 1)])
}

async function restingParts(reactors: number, start: Start): Promise<Parts> {
  const program = start(reactors)
  try {
    await program.waitForLine(READY)
    await sleep(REST_MS + reactors * REST_PER_REACTOR_MS)
    return residentOf(program.pid)
  } finally {
    await program.stop()
  }
}

const columns = Object.fromEntries(['sum', ...PARTS].map(part => [part, 1]))
type Start = (reactors: number) => Program
const built = buildProgram()
const FORMS: Readonly<Record<string, Start>> = {
  'as a package': reactors => startGateway(reactors, built),
  'from the sources': reactors => startGateway(reactors, `${ROOT}/src/launch.js`),
  'bare threads': startBare,
}
try {
  const counts = (process.argv[2] ?? '1,2,16').split(',').map(Number)
  for (const [form, start] of Object.entries(FORMS)) {
    const table = new MeasuredTable(`Resident MiB, ${form}`, columns)
    await restingParts(counts[0]!, start)
    for (const reactors of counts) {
      const rounds: Parts[] = []
      for (let round = 0; round < ROUNDS; round++) rounds.push(await restingParts(reactors, start))
      const least = rounds.toSorted((a, b) => sumOf(a) - sumOf(b))[0]!
      table.row(`${reactors} reactors`, sumOf(least), ...PARTS.map(part => least[part]))
    }
  }
} finally {
  rmSync(folder, { recursive: true })
}
