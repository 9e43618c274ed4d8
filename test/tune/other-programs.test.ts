/** Use of the processors by other programs, from files as Linux writes them, and from this machine. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type CpuTimes, cpuTimes, otherUse } from '../../src/tune/other-programs.ts'

/** `processes`: id -> name, parent, ticks in user and system mode. */
function times(t: TestContext, cpu: string, processes: Readonly<Record<number, readonly [string, number, number]>>) {
  const root = mkdtempSync(join(tmpdir(), 'sluice-proc-'))
  t.after(() => rmSync(root, { recursive: true }))
  writeFileSync(join(root, 'stat'), `cpu  ${cpu}\ncpu0 1 2 3\n`)
  for (const [id, [name, parent, ticks]] of Object.entries(processes)) {
    mkdirSync(join(root, id))
    writeFileSync(join(root, id, 'stat'), `${id} (${name}) S ${parent} 1 1 0 -1 4 9 9 9 9 ${ticks} ${ticks} 0 0 20 0\n`)
  }
  return cpuTimes(root)
}

// user nice system idle iowait irq softirq steal guest
const BEFORE = '100 0 100 1000 0 0 0 0 0 0'

test('the time of this process and its children does not count, nor that of interrupts', t => {
  const before = times(t, BEFORE, { 10: ['node', 1, 5], 11: ['gateway', 10, 5], 20: ['odd ) name', 1, 10] })
  const after = times(t, '160 0 140 1060 0 10 30 0 0 0', {
    ...{ 10: ['node', 1, 15], 11: ['gateway', 10, 25], 12: ['child', 11, 10], 20: ['odd ) name', 1, 20] },
  })
  // 100 busy of 200 ticks; 20 + 40 + 20 are ours.
  assert.deepEqual(otherUse(before, after, 10), { share: 0.1, programs: ['odd ) name (20) 10 %'] })
})

test('time that other virtual machines took counts as that of other programs', t => {
  const after = times(t, '100 0 100 1050 0 0 0 50 0 0', {})
  assert.deepEqual(otherUse(times(t, BEFORE, {}), after, 10), { share: 0.5, programs: [] })
})

test('without these files nothing is known', t => {
  assert.equal(cpuTimes('/nowhere'), null)
  assert.equal(otherUse(null, times(t, BEFORE, {}), 1), null)
})

const LINUX = { skip: !existsSync('/proc/stat') }

test('a program of this machine that uses a processor is named', LINUX, async t => {
  const child = spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' })
  t.after(() => child.kill('SIGKILL'))
  const before = cpuTimes()
  const isNamed = (after: CpuTimes | null): boolean =>
    otherUse(before, after, 0)!.programs.some(program => program.includes(` (${child.pid}) `))
  while (!isNamed(cpuTimes())) await new Promise(setImmediate)
})
