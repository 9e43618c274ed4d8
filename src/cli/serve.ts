/** `start`, second part: loads the home, starts the node, prints its addresses, and runs until a signal ends it. */
import { flushCompileCache } from 'node:module'
import { ApiProjects } from '../apis/api-projects.ts'
import { mediationSummaries } from '../apis/project-mediation.ts'
import { ConfigurationErrors, type Diagnostic, formatDiagnostic } from '../config/diagnostics.ts'
import type { Examination } from '../config/load.ts'
import { type Log, openLog } from '../observe/log.ts'
import { extensionSummaries } from '../plan/mediation-planning.ts'
import { type NodeComponents, nodeComponents } from '../plan/node-components.ts'
import { ListenError } from '../plan/ports.ts'
import type { ControlThread } from '../primary/control-thread.ts'
import { DataLocked } from '../primary/data-lock.ts'
import { Predecessor } from '../primary/handover.ts'
import { loadHome, NOTHING_ACTIVE } from '../primary/home-loading.ts'
import { CannotWrite } from '../primary/access-log-output.ts'
import { Node, type NodeAddresses, type NodeOptions } from '../primary/node.ts'
import { ThreadFailed } from '../primary/thread-supervisor.ts'
import { type CliArguments, type CommandOptions, EXIT_CONFIGURATION, EXIT_FAILED } from './arguments.ts'
import { type RunningSample, SampleError, sampleToken, startSample } from './sample.ts'
import { endProcess, mapLargeBlocks } from '../runtime/c-functions.ts'
import { trimProcessOnceIdle, trimProcessWhenIdle } from '../runtime/heap-trim.ts'
import { writeLine } from './service-log.ts'
import { notifyServiceManager } from './service-manager.ts'
import { counted } from './terminal.ts'

/** Errors that an operator can correct; the message says how. */
const EXPECTED = [DataLocked, ListenError, CannotWrite, ThreadFailed, SampleError]

const END_SIGNALS = ['SIGTERM', 'SIGINT'] as const

/** Resolves with the exit code. `threads`: created, and loading their modules. */
export async function serve(
  installation: CliArguments,
  { sample, watch, waitS }: CommandOptions,
  examined: Examination,
  threads: Pick<NodeOptions, 'reactors' | 'control'>,
): Promise<number> {
  mapLargeBlocks()
  const projects = new ApiProjects(installation.home)
  const loaded = await loadHome(installation, projects, NOTHING_ACTIVE, examined)
  const { configuration, apis, sequences } = loaded
  // Errors of single APIs and sequences refuse no start, but are reported with the others.
  if (loaded.errors.length > 0) return refuse([...loaded.errors, ...apis.errors, ...sequences.errors])
  const log = openLog(configuration.logging.level)
  for (const diagnostic of loaded.unknown) log.warn(`${formatDiagnostic(diagnostic)}; it has no effect`)
  for (const warning of [...loaded.warnings, ...apis.warnings, ...sequences.warnings])
    log.warn(formatDiagnostic(warning))
  // The other APIs are deployed; the default replaces a sequence with errors.
  for (const error of [...apis.errors, ...sequences.errors]) log.error(formatDiagnostic(error))
  const flows = [...extensionSummaries(apis.apis, sequences), ...mediationSummaries(apis.apis)]
  for (const diagnostic of [...apis.skipped, ...flows]) log.info(formatDiagnostic(diagnostic))
  const ended = Promise.withResolvers<number>()
  const fatal = (cause: string): void => {
    log.fatal(cause)
    ended.resolve(EXIT_FAILED)
  }
  const components = nodeComponents(configuration)
  for (const reason of components.warnings) log.warn(reason)
  // The first process of a container would ignore them.
  const endAtOnce = (): never => process.exit(0)
  for (const signal of END_SIGNALS) process.on(signal, endAtOnce)
  try {
    const predecessor = Predecessor.find()
    const runningSample =
      sample && components.runsGateway ? await startSample(apis, installation.home, predecessor !== null) : null
    const { node, addresses } = await Node.start({
      ...{ installation, projects, loaded, components, ...threads, log, fatal, predecessor },
      databaseWaitMs: waitS * 1000,
      replaced: () => endReplaced(),
    })
    for (const signal of END_SIGNALS) process.off(signal, endAtOnce)
    const endReplaced = endOnSignals(node, ended.resolve, log)
    if (watch) node.watch()
    if (components.notice !== '') log.info(components.notice)
    if (components.runsGateway) {
      if (addresses.listeners.length === 0) log.warn('no listener is enabled: no client can reach this gateway')
      const token = runningSample === null ? '' : await tokenFor(runningSample, threads.control, log)
      announce(gatewayLines(addresses, apis.apis.length, runningSample, token), log)
    } else if (components.runsKeyManager) {
      if (addresses.managementPort === 0) log.warn('management.enable is false: no client can reach the key manager')
      announce(keyManagerLines(addresses, components, apis.apis.length), log)
    } else if (components.runsTrafficManager) {
      const opened = `role ${components.role}: a traffic manager, without APIs`
      announce([opened, ...managementLines(addresses), 'ready'], log)
    } else announce(idleLines(addresses, components), log)
    // The service manager takes the new process for the service.
    const mainPid = predecessor === null ? [] : [`MAINPID=${process.pid}`]
    notifyServiceManager([...mainPid, 'READY=1'], log)
    flushCompileCache()
    trimProcessOnceIdle(addresses.reactors)
    trimProcessWhenIdle(() => node.requests)
  } catch (error) {
    if (error instanceof ConfigurationErrors) return refuse(error.errors)
    if (!EXPECTED.some(kind => error instanceof kind)) throw error
    writeLine('fatal', (error as Error).message)
    return endIfStuck(EXIT_FAILED, threads)
  }
  return endIfStuck(await ended.promise, threads)
}

/** Ends the process where threads are in calls of the system that do not end: `process.exit` would wait for them. */
function endIfStuck(code: number, { reactors, control }: Pick<NodeOptions, 'reactors' | 'control'>): number {
  if (reactors.hasStuck || control.isStuck) endProcess(code)
  return code
}

function refuse(errors: readonly Diagnostic[]): number {
  for (const error of errors) writeLine('fatal', formatDiagnostic(error))
  return EXIT_CONFIGURATION
}

/** Returns '' if there is no token; a request without one gets 401. */
function tokenFor(sample: RunningSample, control: ControlThread, log: Log): Promise<string> {
  return sampleToken(sample, request => control.manage(request)).catch((error: Error) => {
    log.warn(`no token for the sample API: ${error.message}`)
    return ''
  })
}

/** Returns what ends the process once another one has taken over. */
function endOnSignals(node: Node, end: (code: number) => void, log: Log): () => void {
  let signals = 0
  const stop = (signal: string): void => {
    if (++signals > 1) {
      node.abort()
      // `process.exit` would wait for a thread that is stuck, and no thread is known to be stuck yet.
      endProcess(EXIT_FAILED)
    }
    log.info(`${signal}: finishing what is in flight; a second signal ends at once`)
    notifyServiceManager(['STOPPING=1'], log)
    node.drain().then(() => end(0))
  }
  for (const signal of END_SIGNALS) process.on(signal, () => stop(signal))
  process.on('SIGHUP', () => node.refresh())
  return () => {
    // A signal ends it at once.
    signals = 1
    log.info('another process has taken over; finishing what is in flight')
    node.drain(true).then(() => end(0))
  }
}

// ---- output ---------------------------------------------------------------------------------------------------------

/** A terminal gets text on standard output; elsewhere the lines are events of the log. */
function announce(lines: readonly string[], log: Log): void {
  if (process.stdout.isTTY) process.stdout.write(`${lines.join('\n')}\n`)
  else for (const line of lines) log.info(line)
}

function gatewayLines(
  addresses: NodeAddresses,
  apis: number,
  sample: RunningSample | null,
  token: string,
): readonly string[] {
  const { listeners, reactors, level } = addresses
  const lines = listeners.map(({ kind, host, port }) => `listening on ${kind}://${hostText(host)}:${port}`)
  lines.push(`${counted(reactors, 'reactor')}, ${level}, ${counted(apis, 'API')}`, ...managementLines(addresses))
  if (sample !== null) lines.push(`sample backend on ${sample.backend}`)
  lines.push(...passwordLine(addresses), 'ready')
  const plain = listeners.find(({ kind }) => kind === 'http')
  if (sample === null || plain === undefined) return lines
  const credentials = token === '' || !process.stdout.isTTY ? '' : ` -H 'Authorization: Bearer ${token}'`
  lines.push(
    `try: curl -i http://${reachableHost(plain.host)}:${plain.port}${sample.echoPath} -d 'hello'${credentials}`,
  )
  if (sample.healthcare !== null) {
    lines.push(
      `try: curl -i 'http://${reachableHost(plain.host)}:${plain.port}${sample.healthcare.searchPath}'${credentials}`,
    )
  }
  return lines
}

function keyManagerLines(addresses: NodeAddresses, { role }: NodeComponents, apis: number): readonly string[] {
  const summary = `role ${role}: a key manager for ${counted(apis, 'API')}, and no gateway`
  return [summary, ...managementLines(addresses), ...passwordLine(addresses), 'ready']
}

/** A node whose role has no component that is built is never ready. */
function idleLines(addresses: NodeAddresses, { role }: NodeComponents): readonly string[] {
  return [`role ${role}: no gateway, so no listener and no API`, ...managementLines(addresses), 'started']
}

function managementLines({ healthHost, healthPort, managementPort }: NodeAddresses): readonly string[] {
  const health = `health on http://${hostText(healthHost)}:${healthPort}/healthz`
  return managementPort === 0 ? [health] : [health, `management and key manager on https://localhost:${managementPort}`]
}

/** Elsewhere than on a terminal, lines are stored: they name the file that has the password. */
function passwordLine({ firstAccount }: NodeAddresses): readonly string[] {
  if (firstAccount === null) return []
  const { username, password } = firstAccount
  const where = 'generated now and kept in the data folder'
  if (process.stdout.isTTY) return [`password of ${username}: ${password} (${where})`]
  return [`password of ${username}: in the file admin-password (${where})`]
}

function hostText(host: string): string {
  return host.includes(':') ? `[${host}]` : host === '' ? '*' : host
}

/** The host that reaches a listener from its own machine. */
function reachableHost(host: string): string {
  return host === '' || host === '0.0.0.0' || host === '::' ? '127.0.0.1' : hostText(host)
}
