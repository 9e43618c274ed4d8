/** Events of analytics on disk: long outages, damaged files, full disks. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { AnalyticsSpool, type SpoolLoss } from '../../src/control/analytics-spool.ts'
import { makeTemporaryFolder } from '../harness/temporary-folder.ts'

function opened(t: TestContext, bytesMax = 16 * 1024 * 1024) {
  const folder = makeTemporaryFolder()
  t.after(() => rmSync(folder, { recursive: true }))
  const losses: SpoolLoss[] = []
  const open = () => new AnalyticsSpool(folder, bytesMax, loss => losses.push(loss))
  return { folder, open, spool: open(), losses }
}

function linesOf(...numbers: readonly number[]): string {
  return numbers.map(n => `{"n":${n},"text":"${'x'.repeat(300)}"}\n`).join('')
}

function numbersIn(lines: string): readonly number[] {
  return lines
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line).n)
}

test('a long outage takes few files, and its events come in order, also in the next process', t => {
  const { folder, open, spool, losses } = opened(t)
  const BATCHES = 20_000
  for (let n = 0; n < BATCHES; n++) assert.equal(spool.add(linesOf(n), 1), 0)
  const { length } = readdirSync(folder)
  assert.ok(length <= BATCHES / 250, String(length))
  const next = open()
  assert.equal(next.bytes, spool.bytes)
  const numbers: number[] = []
  for (let batch = next.oldest(); batch !== null; batch = next.oldest()) {
    assert.ok(batch.events <= 500)
    numbers.push(...numbersIn(batch.lines))
    next.remove(batch.number)
  }
  assert.deepEqual(
    numbers,
    Array.from({ length: BATCHES }, (_, n) => n),
  )
  assert.deepEqual([next.bytes, readdirSync(folder), losses], [0, [], []])
})

test('a batch that is being sent gets no further events', t => {
  const { spool } = opened(t)
  spool.add(linesOf(1), 1)
  const sent = spool.oldest()!
  spool.add(linesOf(2), 1)
  spool.remove(sent.number)
  assert.deepEqual(numbersIn(spool.oldest()!.lines), [2])
})

test('damaged files are set aside, counted and told once; what a killed process has half written is left out', t => {
  const { folder, open, spool, losses } = opened(t, 4000)
  for (let n = 0; n < 10; n++) spool.add(linesOf(n, n), 2)
  const names = readdirSync(folder).sort()
  writeFileSync(join(folder, names[0]!), '\0\0\0\0')
  truncateSync(join(folder, names[1]!), 0)
  truncateSync(join(folder, names[2]!), statSync(join(folder, names[2]!)).size - 7)
  rmSync(join(folder, names[3]!))
  const next = open()
  const first = next.oldest()!
  const [loss, ...others] = losses
  assert.deepEqual([loss?.files, loss?.events, loss?.cause], [2, 4, 'it holds no events'])
  assert.equal(loss?.file, join(folder, names[0]!))
  assert.deepEqual(others, [])
  assert.equal(first.events, 1, 'the line that was cut is left out')
  const aside = readdirSync(folder).filter(name => name.endsWith('.unreadable'))
  assert.deepEqual(aside.sort(), [`${names[0]}.unreadable`, `${names[1]}.unreadable`])
  assert.equal(readFileSync(join(folder, aside[0]!), 'latin1'), '\0\0\0\0')
  const last = open()
  assert.equal(last.oldest()?.number, first.number)
})

test('of files that are set aside the newest eight stay', t => {
  const { folder, open } = opened(t)
  for (let n = 1; n <= 20; n++) writeFileSync(join(folder, `${String(n).padStart(12, '0')}-1.ndjson`), 'no event')
  assert.equal(open().oldest(), null)
  const names = readdirSync(folder).sort()
  assert.equal(names.length, 8)
  assert.match(names[0]!, /^000000000013-1\.ndjson\.unreadable$/)
})

test('on a full disk events are refused whole, and taken again once there is room', t => {
  const disk = makeTemporaryFolder()
  const { error, status } = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', disk])
  t.after(() => {
    spawnSync('umount', [disk])
    rmSync(disk, { recursive: true })
  })
  if (error !== undefined || status !== 0) return t.skip('a disk of 64 KiB cannot be mounted here')
  const spool = new AnalyticsSpool(join(disk, 'spool'), 1_000_000, () => assert.fail('a loss'))
  const fill = () => {
    for (let n = 0; ; n++) spool.add(linesOf(n, n), 2)
  }
  assert.throws(fill, /ENOSPC/)
  for (let n = 0; n < 100; n++) assert.throws(() => spool.add(linesOf(0, 0, 0), 3), /ENOSPC/)
  const [first, ...more] = readdirSync(join(disk, 'spool'))
  assert.deepEqual(more, [])
  const text = readFileSync(join(disk, 'spool', first!), 'utf8')
  assert.ok(text.endsWith('}\n'))
  assert.equal(numbersIn(text).length, Number(/-(\d+)\./.exec(first!)![1]))
  spool.remove(spool.oldest()!.number)
  assert.equal(spool.add(linesOf(7), 1), 0)
  assert.deepEqual(numbersIn(spool.oldest()!.lines), [7])
})
