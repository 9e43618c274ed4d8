/**
 * The data folder of a program that has started before: account of the administrator, signing key, database,
 * certificate of the management listener, result of the self-test of sockets. To make them takes a quarter of the
 * processor time of a start. `npm test` makes them once, for the homes of all tests whose subject is not the first
 * start.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PLAIN_ONLY, Program } from './program.ts'

/** Starts the program once in a home below `folder`. Returns the path of the data folder. */
export async function makeKeptData(launcher: string, folder: string, env: NodeJS.ProcessEnv): Promise<string> {
  const home = mkdtempSync(join(folder, 'sluice-kept-'))
  writeFileSync(join(home, 'deployment.toml'), '')
  const management = ['management.enable=true', 'management.port=0', 'management.health_port=0']
  const ports = ['transport.passthru_http.listener.parameters.port=0', ...management]
  const sets = [...PLAIN_ONLY, ...ports].flatMap(set => ['--set', set])
  const words = [launcher, 'start', '--home', home, ...sets]
  const program = new Program(process.execPath, words, env as Record<string, string>)
  try {
    await program.said.until(/^ready$/m)
    program.signal('SIGTERM')
    assert.deepEqual(await program.exited, { code: 0, signal: null }, program.err.text)
  } finally {
    await program.kill()
  }
  return join(home, 'data')
}
