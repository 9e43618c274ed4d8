/**
 * Runs gateways as an operator does: as real programs in homes of their own, with commands of the command line, and
 * with a backend that answers `ok`. `leave` ends all of them.
 */
import assert from 'node:assert/strict'
import { parseArguments } from '../../src/cli/arguments.ts'
import { sendCommand } from '../../src/cli/control-client.ts'
import { manage } from '../../src/cli/management.ts'
import type { Terminal } from '../../src/cli/terminal.ts'
import type { ConnectionList } from '../../src/observe/connection-list.ts'
import type { Side } from '../../src/protocol/machine.ts'
import type { StateName } from '../../src/protocol/states.ts'
import { connectPeer, type Peer, pollPause, ScriptedBackend } from './peers.ts'
import {
  type Data,
  freePort,
  type Home,
  LAUNCHER,
  makeHome,
  Program,
  type RunningGateway,
  startProgram,
} from './program.ts'

/** The backend does not answer requests whose path contains this. */
export const SILENT = '/silent'

export const backend = await ScriptedBackend.listen(peer => void answerAll(peer))

async function answerAll(peer: Peer): Promise<void> {
  while (!peer.isClosed && peer.ending === '') {
    await peer.untilRequest()
    if (peer.text === '' || peer.text.includes(SILENT)) return
    if (peer.text.includes('Content-Length: 5')) await peer.untilText('hello')
    peer.take()
    peer.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
  }
  // The gateway has ended its side; this side would stay open, with its descriptor, until the end of the file.
  peer.destroy()
}

const homes: Home[] = []
const started: Program[] = []
const clients: Peer[] = []
/** Ends clients, programs and connections, and removes the homes; called at the end of a test file. */
export async function leave(): Promise<void> {
  for (const client of clients.splice(0)) client.destroy()
  await Promise.all(started.splice(0).map(program => program.kill()))
  for (const home of homes.splice(0)) home.remove()
  // The next file of the process has the same backend.
  backend.reset()
}

export function home(port = backend.port, data?: Data): Home {
  const made = makeHome(port, '', data)
  homes.push(made)
  return made
}

type Environment = Readonly<Record<string, string>>

export async function start(
  at = home(),
  sets: readonly string[] = [],
  env: Environment = {},
  words: readonly string[] = [],
): Promise<RunningGateway> {
  const running = await startProgram(at, sets, env, words)
  started.push(running.program)
  return running
}

/** Starts a gateway with two reactors, which need a port that is known beforehand. */
export async function startTwo(env: Environment = {}): Promise<RunningGateway> {
  const port = await freePort()
  const sets = ['transport.passthru_http.reactors=2', `transport.passthru_http.listener.parameters.port=${port}`]
  return start(home(), sets, env)
}

/** Starts a command and does not wait for its end. */
export function begin(at: Home, ...words: string[]): Program {
  const program = new Program(process.execPath, [LAUNCHER, ...words, '--home', at.path])
  started.push(program)
  return program
}

export async function sluice(at: Home, ...words: string[]): Promise<{ code: number | null; out: string; err: string }> {
  const program = begin(at, ...words)
  const { code } = await program.exited
  return { code, out: program.out.text, err: program.err.text }
}

type RunCommand = (line: ReturnType<typeof parseArguments>, output: Terminal, errorOutput: Terminal) => Promise<number>

/** Runs a command in this process: one of its own would take more than the command. Throws if it fails. */
export async function inProcess(at: Home, words: readonly string[], run: RunCommand): Promise<string> {
  let [out, err] = ['', '']
  const line = parseArguments([...words, '--home', at.path])
  const code = await run(line, { write: text => (out += text) }, { write: text => (err += text) })
  assert.deepEqual([code, err], [0, ''], words.join(' '))
  return out
}

/** Runs a command of applications, keys, subscriptions, users, mails or tokens in this process, without a password. */
export function managed(at: Home, ...words: string[]): Promise<string> {
  return inProcess(at, words, ({ command, args, options }, output, errorOutput) =>
    manage(command, args, options, output, errorOutput, async () => ''),
  )
}

export async function dial({ port }: RunningGateway): Promise<Peer> {
  const client = await connectPeer(port)
  clients.push(client)
  return client
}

export interface ListedConnections {
  readonly reactors: readonly (ConnectionList & { readonly reactor: number })[]
  readonly silent: readonly number[]
}

export async function listed(at: Home, ...words: string[]): Promise<ListedConnections> {
  const { code, out, err } = await sluice(at, 'connections', '--json', ...words)
  assert.deepEqual([code, err], [0, ''])
  return JSON.parse(out)
}

/** Lists the connections as soon as one of this side is in this state. */
export async function untilListed(at: Home, state: StateName, side: Side): Promise<ListedConnections> {
  const isThere = ({ reactors }: ListedConnections): boolean =>
    reactors.some(({ counts }) => counts[side]?.[state] !== undefined)
  // A command line for each look would cost more than all the rest.
  while (!isThere(await sendCommand<ListedConnections>(at.data, { command: 'connections' }))) await pollPause()
  return listed(at)
}
