/** Who gets whose answer. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SharedAnswers } from '../../src/structure/shared-answers.ts'

test('all who ask at the same time get one answer, and the next one is asked for anew', async () => {
  const answers = new SharedAnswers<number>()
  let begun = 0
  const begin = async () => ++begun
  const [first, second, other] = [answers.ask('a', begin), answers.ask('a', begin), answers.ask('b', begin)]
  assert.deepEqual([answers.size, answers.has('a'), answers.has('c')], [2, true, false])
  assert.deepEqual(await Promise.all([first, second, other]), [1, 1, 2])
  assert.equal(answers.size, 0)
  assert.equal(await answers.ask('a', begin), 3)
})

test('a failure is that of all who wait, and is not kept', async () => {
  const answers = new SharedAnswers<number>()
  const fail = () => Promise.reject(new Error('none'))
  const settled = await Promise.allSettled([answers.ask('a', fail), answers.ask('a', async () => 1)])
  assert.deepEqual(
    settled.map(({ status }) => status),
    ['rejected', 'rejected'],
  )
  assert.equal(await answers.ask('a', async () => 2), 2)
})

test('what was forgotten is answered, and ends nothing that was begun after it', async () => {
  const answers = new SharedAnswers<number>()
  const before = Promise.withResolvers<number>()
  const after = Promise.withResolvers<number>()
  const old = answers.ask('a', () => before.promise)
  answers.forget()
  const fresh = answers.ask('a', () => after.promise)
  before.resolve(1)
  assert.equal(await old, 1)
  assert.equal(answers.has('a'), true)
  after.resolve(2)
  assert.equal(await fresh, 2)
})
