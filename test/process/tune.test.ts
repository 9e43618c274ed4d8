/** `tune` and `advise` of the real program: output, and mistakes of the command line. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { home, leave, sluice, start } from '../harness/operator.ts'
import { ask } from '../harness/program.ts'

after(leave)

test('advise names the limit that the running gateway has hit', async () => {
  const gateway = await start(home(), ['transport.passthru_http.target.max_bytes=50'])
  assert.match((await sluice(gateway.home, 'advise')).out, /^no limit was hit since the start \(0 requests in /)
  await ask(gateway.port, 'GET', `/t/${'x'.repeat(99)}`)
  const { code, out } = await sluice(gateway.home, 'advise')
  assert.equal(code, 0)
  assert.match(
    out,
    /^1 limit hit \(1 request in \d+ \w+\): too few to tell which limits are near\n\nhit {4}transport\.passthru_http\.target\.max_bytes = 50 -> 100\n {7}1 response with 414\n/,
  )
  const { findings, traffic } = JSON.parse((await sluice(gateway.home, 'advise', '--json')).out)
  assert.deepEqual([findings[0].proposed, traffic.requests], [100, 1])
  assert.equal((await sluice(gateway.home, 'advise', 'x')).code, 2)
})

/** Words after `tune`, and the reason. */
const MISTAKES: readonly (readonly [readonly string[], RegExp])[] = [
  [[], /give the path of a request, or --delays FILE/],
  [['/t/', '--delays', 'x'], /give the path/],
  [['t'], /begins with \//],
  [['/t/', '--clients', '0'], /--clients is a whole number, 1 to 10000/],
  [['/t/', '--only', 'memory'], /--only lists some of reactors, workers/],
  [['/t/', '--report', '/nowhere/a.html'], /--report \/nowhere\/a\.html cannot be written \(ENOENT\)/],
  [['--delays', '/nowhere'], /\/nowhere cannot be read \(ENOENT\)/],
]
for (const [words, reason] of MISTAKES) {
  test(`tune ${words.join(' ')}: refused`, async () => {
    const { code, err } = await sluice(home(), 'tune', ...words)
    assert.notEqual(code, 0)
    assert.match(err, reason)
  })
}
