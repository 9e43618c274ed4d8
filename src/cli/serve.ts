/** What `start` does once threads have begun: everything that a node runs, until a signal ends it. */
import { flushCompileCache } from 'node:module'
import { ApiProjects } from '../config/api-definitions.ts'
import { ConfigurationFaults, describe, type Fault } from '../config/fault.ts'
import type { Examination } from '../config/load.ts'
import { AuthorityFailed } from '../primary/authority-keeper.ts'
import { DataLocked } from '../primary/data-lock.ts'
import { CannotWrite, Gateway, type GatewayOptions, type Listeners } from '../primary/gateway.ts'
import type { KeyManagerAddresses, KeyManagerNodeOptions } from '../primary/key-manager-node.ts'
import { type NodeParts, partsOf } from '../primary/node-parts.ts'
import { openLog } from '../observe/log.ts'
import { CannotListen } from '../primary/ports.ts'
import { NOTHING_RUNS, prepare, type Prepared } from '../primary/preparation.ts'
import { ReactorFailed } from '../primary/reactor-pool.ts'
import type { CliArguments, CommandOptions } from './arguments.ts'
import { EXIT_CONFIGURATION, EXIT_FAILED } from './exit-codes.ts'

const SAMPLE_PORT = 8288

class SampleFailed extends Error {
  override readonly name = 'SampleFailed'
}

/** What an operator can put right: the message says all there is to say. */
const EXPECTED = [DataLocked, CannotListen, CannotWrite, AuthorityFailed, ReactorFailed, SampleFailed]

/** Resolves with the exit code. */
export async function serve(
  place: CliArguments,
  { sample, watch }: CommandOptions,
  examined: Examination,
  begun: Pick<GatewayOptions, 'threads' | 'authority'>,
): Promise<number> {
  const projects = new ApiProjects(place.home)
  const prepared = await prepare(place, projects, NOTHING_RUNS, examined)
  const { configuration, apis, sequences } = prepared
  // What keeps it from starting, and beside it what would not have.
  if (prepared.faults.length > 0) return refuse([...prepared.faults, ...apis.faults, ...sequences.faults])
  const log = openLog(configuration.logging.level)
  for (const fault of prepared.unknown) log.warn(`${describe(fault)}; it has no effect`)
  for (const warning of [...prepared.warnings, ...apis.warnings, ...sequences.warnings]) log.warn(describe(warning))
  // One broken API never stops the others, and of a sequence that is broken the default stands in.
  for (const fault of [...apis.faults, ...sequences.faults]) log.error(describe(fault))
  for (const one of apis.leftOut) log.info(describe(one))
  const ended = Promise.withResolvers<number>()
  const fatal = (cause: string): void => {
    log.fatal(cause)
    ended.resolve(EXIT_FAILED)
  }
  const parts = partsOf(configuration)
  for (const reason of parts.notBuilt) log.warn(reason)
  try {
    if (!parts.runsGateway) {
      if (parts.runsKeyManager) {
        const options = { place, projects, prepared, parts, authority: begun.authority, log }
        await startKeyManager(options, watch, ended.resolve)
      } else await startIdle(parts, prepared, place, ended.resolve, log)
      return await ended.promise
    }
    const backend = sample ? await startSample() : undefined
    const { gateway, listeners } = await Gateway.start({ place, projects, prepared, ...begun, log, fatal })
    endOnSignals(gateway, ended.resolve, log)
    if (watch) gateway.watch()
    if (parts.leftOut !== '') log.info(parts.leftOut)
    if (listeners.listeners.length === 0) log.warn('no listener is enabled: no client can reach this gateway')
    const tried = backend === undefined ? undefined : { port: backend, token: await tokenFor(begun, log) }
    announce(listeners, apis.apis.length, tried)
    flushCompileCache()
  } catch (error) {
    if (error instanceof ConfigurationFaults) return refuse(error.faults)
    if (!EXPECTED.some(kind => error instanceof kind)) throw error
    process.stderr.write(`${(error as Error).message}\n`)
    return EXIT_FAILED
  }
  return ended.promise
}

/** A node whose role has a key manager and no gateway. */
async function startKeyManager(
  options: KeyManagerNodeOptions,
  watch: boolean,
  end: (code: number) => void,
): Promise<void> {
  const { parts, prepared, log } = options
  const { KeyManagerNode } = await import('../primary/key-manager-node.ts')
  const { node, addresses } = await KeyManagerNode.start(options)
  endOnSignals(node, end, log)
  if (watch) node.watch()
  if (addresses.managementPort === 0) log.warn('management.enable is false: nobody can reach the key manager')
  const known = counted(prepared.apis.apis.length, 'API')
  const lines = [`role ${parts.role}: a key manager that knows ${known}, and no gateway`, ...sideDoors(addresses)]
  process.stdout.write(`${[...lines, ...addresses.said, 'ready'].join('\n')}\n`)
  flushCompileCache()
}

/** A node whose role has neither. */
async function startIdle(
  parts: NodeParts,
  { configuration }: Prepared,
  { dataDir }: CliArguments,
  end: (code: number) => void,
  log: ReturnType<typeof openLog>,
): Promise<void> {
  const { IdleNode } = await import('../primary/idle-node.ts')
  const node = await IdleNode.start({ configuration, parts, dataDir, warn: cause => log.warn(cause) })
  const reread = (): void => log.warn(`this node runs no gateway (${parts.role}): there is nothing to reload`)
  endOnSignals({ drain: () => node.drain(), abort: () => node.abort(), refresh: reread }, end, log)
  const health = `health on http://${shown(node.healthHost)}:${node.healthPort}/healthz`
  process.stdout.write(`role ${parts.role}: no gateway, so no listener and no API\n${health}\nstarted\n`)
}

function refuse(faults: readonly Fault[]): number {
  for (const fault of faults) process.stderr.write(`${describe(fault)}\n`)
  return EXIT_CONFIGURATION
}

async function startSample(): Promise<number> {
  const { startSampleThread } = await import('./sample-backend.ts')
  try {
    return (await startSampleThread(SAMPLE_PORT)).port
  } catch (error) {
    const remedy =
      'Stop what uses that port. If it is the sample backend of another gateway, it answers for this one too: ' +
      'start without a second, as in "npm run sluice -- start --set server.offset=10 --data DIR"'
    throw new SampleFailed(`${(error as Error).message}. ${remedy}`)
  }
}

interface Sample {
  /** Of its backend. */
  readonly port: number
  /** '' where there is none. */
  readonly token: string
}

/** A sample without one answers 401, which shows something too. */
async function tokenFor({ authority }: Pick<GatewayOptions, 'authority'>, log: { warn(text: string): void }) {
  const { sampleToken } = await import('./sample-token.ts')
  return sampleToken(request => authority.manage(request)).catch((error: Error) => {
    log.warn(`no token for the sample API: ${error.message}`)
    return ''
  })
}

function announce(started: Listeners, apis: number, sample: Sample | undefined): void {
  const { listeners, reactors, level, said } = started
  const lines = listeners.map(({ kind, host, port }) => `listening on ${kind}://${shown(host)}:${port}`)
  lines.push(`${counted(reactors, 'reactor')}, ${level}, ${counted(apis, 'API')}`, ...sideDoors(started))
  if (sample !== undefined) lines.push(`sample backend on http://127.0.0.1:${sample.port}`)
  lines.push(...said, 'ready')
  const plain = listeners.find(({ kind }) => kind === 'http')
  if (sample !== undefined && plain !== undefined) {
    const credentials = sample.token === '' ? '' : ` -H 'Authorization: Bearer ${sample.token}'`
    lines.push(`try: curl -i http://${reachable(plain.host)}:${plain.port}/sample/1.0.0/echo -d 'hello'${credentials}`)
  }
  process.stdout.write(`${lines.join('\n')}\n`)
}

function sideDoors({ healthHost, healthPort, managementPort }: KeyManagerAddresses): readonly string[] {
  const health = `health on http://${shown(healthHost)}:${healthPort}/healthz`
  return managementPort === 0 ? [health] : [health, `management and key manager on https://localhost:${managementPort}`]
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

function shown(host: string): string {
  return host.includes(':') ? `[${host}]` : host === '' ? '*' : host
}

function reachable(host: string): string {
  return host === '' || host === '0.0.0.0' || host === '::' ? '127.0.0.1' : shown(host)
}

function endOnSignals(
  gateway: Pick<Gateway, 'drain' | 'abort' | 'refresh'>,
  end: (code: number) => void,
  log: { info(text: string): void },
): void {
  let signals = 0
  const stop = (signal: string): void => {
    if (++signals > 1) {
      gateway.abort()
      process.exit(EXIT_FAILED)
    }
    log.info(`${signal}: finishing what is in flight; a second signal ends at once`)
    gateway.drain().then(() => end(0))
  }
  process.on('SIGTERM', () => stop('SIGTERM'))
  process.on('SIGINT', () => stop('SIGINT'))
  process.on('SIGHUP', () => gateway.refresh())
}
