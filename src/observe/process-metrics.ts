/** Metrics of the process, named as client libraries of Prometheus name them, and of the build. */
import { readdirSync, readFileSync } from 'node:fs'

interface Build {
  readonly version: string
  /** Version of Node. */
  readonly runtime: string
}

type Gauge = readonly [name: string, kind: 'counter' | 'gauge', help: string, value: number]

const START_SECONDS = (Date.now() - process.uptime() * 1000) / 1000
const PAGE_BYTES = 4096

/** Text format of Prometheus. What the system does not tell is left out. `filesMax`: limit of open files; -1: none. */
export function renderProcessMetrics(build: Build, filesMax: number): string {
  const { user, system } = process.cpuUsage()
  const gauges: readonly Gauge[] = [
    ['process_cpu_user_seconds_total', 'counter', 'Processor time in user mode.', user / 1e6],
    ['process_cpu_system_seconds_total', 'counter', 'Processor time in system mode.', system / 1e6],
    ['process_cpu_seconds_total', 'counter', 'Processor time of the process.', (user + system) / 1e6],
    ['process_start_time_seconds', 'gauge', 'Start of the process in seconds since 1970.', START_SECONDS],
    ['process_resident_memory_bytes', 'gauge', 'Resident memory.', process.memoryUsage.rss()],
    ['process_virtual_memory_bytes', 'gauge', 'Virtual memory.', virtualBytes()],
    ['process_heap_bytes', 'gauge', 'Data segment of the process.', heapBytes()],
    ['process_open_fds', 'gauge', 'Open file descriptors.', openFiles()],
    ['process_max_fds', 'gauge', 'Largest number of open file descriptors.', filesMax],
  ]
  const lines = gauges
    .filter(([, , , value]) => value >= 0)
    .flatMap(([name, kind, help, value]) => [`# HELP ${name} ${help}`, `# TYPE ${name} ${kind}`, `${name} ${value}`])
  lines.push(
    '# HELP sluice_build_info Version of the gateway and of Node; the value is 1.',
    '# TYPE sluice_build_info gauge',
    `sluice_build_info{version="${build.version}",node="${build.runtime}"} 1`,
  )
  return `${lines.join('\n')}\n`
}

/** -1: the system does not say. */
function virtualBytes(): number {
  try {
    return Number.parseInt(readFileSync('/proc/self/statm', 'latin1'), 10) * PAGE_BYTES
  } catch {
    return -1
  }
}

/** As client libraries read it; -1: the system does not say. */
function heapBytes(): number {
  try {
    const kibibytes = /^VmData:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1]
    return kibibytes === undefined ? -1 : Number(kibibytes) * 1024
  } catch {
    return -1
  }
}

function openFiles(): number {
  try {
    // The directory itself is open while it is read.
    return readdirSync('/proc/self/fd').length - 1
  } catch {
    return -1
  }
}
