/** The gateway as a service of systemd: its unit, and what it tells the service manager. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { GUARD_MS } from '../harness/peers.ts'
import { ask, makeHome, startProgram } from '../harness/program.ts'

const UNIT = resolve(import.meta.dirname, '../../scripts/sluice.service')
const folder = mkdtempSync(join(tmpdir(), 'sluice-service-'))
const home = makeHome(1)
after(() => {
  home.remove()
  rmSync(folder, { recursive: true, force: true })
})

/** A program `systemd-notify` that writes its message to a file; returns the environment and the file. */
function notifier(name: string): { readonly env: Readonly<Record<string, string>>; readonly messages: string } {
  const programs = join(folder, name)
  const messages = join(programs, 'messages')
  mkdirSync(programs)
  writeFileSync(join(programs, 'systemd-notify'), `#!/bin/sh\necho "$NOTIFY_SOCKET $@" >> ${messages}\n`)
  chmodSync(join(programs, 'systemd-notify'), 0o755)
  writeFileSync(messages, '')
  return { env: { PATH: `${programs}:${process.env.PATH}`, NOTIFY_SOCKET: '/run/notify' }, messages }
}

async function until(holds: () => boolean, what: string): Promise<void> {
  for (const due = Date.now() + GUARD_MS; !holds(); await sleep(10)) assert.ok(Date.now() < due, what)
}

test('the service manager gets READY=1 when /readyz answers 200, and STOPPING=1 when a stop begins', async () => {
  const { env, messages } = notifier('complete')
  const { program, healthPort } = await startProgram(home, [], env)
  try {
    const told = (): string => readFileSync(messages, 'utf8')
    await until(() => told() !== '', 'READY=1')
    assert.equal(told(), '/run/notify READY=1\n')
    assert.match(await ask(healthPort, 'GET', '/readyz'), /^HTTP\/1\.1 200 /)
    program.signal('SIGTERM')
    assert.deepEqual(await program.exited, { code: 0, signal: null })
    await until(() => told().includes('STOPPING=1'), 'STOPPING=1')
  } finally {
    await program.kill()
  }
})

test('without a service manager no message is sent', async () => {
  const { env, messages } = notifier('none')
  const { program } = await startProgram(home, [], { ...env, NOTIFY_SOCKET: '' })
  program.signal('SIGTERM')
  await program.exited
  assert.equal(readFileSync(messages, 'utf8'), '')
})

test('a message that cannot be sent is a warning that names it', async () => {
  const { env } = notifier('failing')
  writeFileSync(join(folder, 'failing', 'systemd-notify'), '#!/bin/sh\nexit 3\n')
  const { program } = await startProgram(home, [], env)
  try {
    await program.err.until(/the service manager does not get READY=1: systemd-notify ended with 3/)
  } finally {
    await program.kill()
  }
})

test('the unit allows the calls by which threads share processors', () => {
  const allowed = readFileSync(UNIT, 'utf8').split('SystemCallFilter=~@privileged @resources\n')[1]!
  for (const call of ['setpriority', 'sched_setattr'])
    assert.match(allowed, new RegExp(`^SystemCallFilter=.*\\b${call}\\b`, 'm'))
})

const hasAnalyze = spawnSync('systemd-analyze', ['--version']).status === 0
const skip = hasAnalyze ? false : 'systemd-analyze is not installed'
test('systemd accepts the unit, and finds it well confined', { skip }, () => {
  const program = join(folder, 'sluice')
  writeFileSync(program, '')
  chmodSync(program, 0o755)
  const unit = join(folder, 'sluice.service')
  writeFileSync(unit, readFileSync(UNIT, 'utf8').replace(/^(Exec\w+=)sluice /gm, `$1${program} `))
  const verified = spawnSync('systemd-analyze', ['verify', unit])
  assert.deepEqual([verified.status, verified.stdout.toString() + verified.stderr.toString()], [0, ''])
  // 10 is no confinement at all; services count as "OK" below 5.
  const judged = spawnSync('systemd-analyze', ['security', '--offline=true', '--threshold=20', unit])
  assert.equal(judged.status, 0, judged.stdout.toString())
})
