/** Whatever template and data are, the template is refused, fails with its place, meets a limit, or makes a text. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { TemplateFailure, TemplateSyntaxError } from '../../../src/mediation/freemarker/template-error.ts'
import { MediationFault } from '../../../src/mediation/mediation-fault.ts'
import { IS_LONG, Random, SEED } from '../../harness/random.ts'
import { rendered } from './rendered.ts'

// biome-ignore-start lint/suspicious/noTemplateCurlyInString: templates
const PIECES = [
  ...['${', '}', '<#if ', '>', '</#if>', '<#else>', '<#list ', ' as x', ' as k, v', '</#list>', '<#sep>', '</#sep>'],
  ...[
    '<#assign a = ',
    '<#assign a>',
    '</#assign>',
    '<#macro m p q=1>',
    '</#macro>',
    '<@m ',
    '/>',
    '</@m>',
    '<#nested ',
    '>',
  ],
  ...[
    '<#function f p>',
    '<#return p>',
    '</#function>',
    '<#switch ',
    '<#case ',
    '</#switch>',
    '<#items as i>',
    '</#items>',
  ],
  ...['<#attempt>', '<#recover>', '</#attempt>', '<#compress>', '</#compress>', '<#escape x as x?xml>', '</#escape>'],
  ...[
    '<#noparse>',
    '</#noparse>',
    '<#-- ',
    '-->',
    '<#t>',
    '<#stop ',
    '<#setting number_format="0.0">',
    '\n',
    '  ',
    'text',
  ],
  ...[
    's',
    'n',
    't',
    'h',
    'xs',
    'none',
    'a',
    'x',
    'k',
    'f',
    'm',
    'i',
    '.',
    '[',
    ']',
    '(',
    ')',
    '{',
    ':',
    ',',
    '"b"',
    "'",
  ],
  ...[
    '1',
    '0',
    '-1',
    '2.5',
    '1..3',
    '9..1',
    '+',
    '-',
    '*',
    '/',
    '%',
    '==',
    '!=',
    ' gt ',
    '&&',
    '||',
    '!',
    '??',
    '!""',
    'true',
  ],
  ...[
    '?size',
    '?keys',
    '?values',
    '?join(",")',
    '?sort',
    '?first',
    '?c',
    '?string',
    '?string("0")',
    '?index',
    '?has_next',
  ],
  ...[
    '?replace("b", "$1", "r")',
    '?split(n)',
    '?substring(1)',
    '?map(y -> y)',
    '?filter(y -> y??)',
    '?number',
    '?eval_json',
  ],
  ...[
    '?date',
    '?datetime.iso',
    '?then(1, 2)',
    '?switch(1, 2)',
    '?chunk(n)',
    '?sort_by("b")',
    '?left_pad(n)',
    '?is_hash',
  ],
  ...[
    '?children',
    '?node_name',
    '?matches(s)',
    '?groups',
    '?min',
    '?reverse',
    '?length',
    '?json_string',
    '?item_cycle(1)',
  ],
]
/** Templates that hold the pieces in an order that is often right. */
const FRAMES = [
  ['${', '}'],
  ['<#if ', '>y<#else>n</#if>'],
  ['<#list ', ' as x>${x!}</#list>'],
  ['<#assign a = ', '>${a!}'],
  ['<#function f p><#return ', '></#function>${f(n)}'],
  ['<#switch n><#case ', '>c</#switch>'],
] as const
// biome-ignore-end lint/suspicious/noTemplateCurlyInString: templates

const DATA = JSON.stringify({
  ...{
    s: 'a"b<c>',
    n: 2,
    t: true,
    none: null,
    xs: [3, 'b', null, [1], { b: 1 }, false],
    h: { b: { b: [1, 2] }, c: '1' },
  },
})
const ROUNDS = IS_LONG ? 200_000 : 5000
const LIMITS = { characters: 10_000, items: 1000 }

test('a random template ends in one of the ways that are known', (t: TestContext) => {
  t.diagnostic(`seed ${SEED}`)
  const random = new Random(SEED)
  const ends = { made: 0, failed: 0, refused: 0, limited: 0 }
  for (let round = 0; round < ROUNDS; round++) {
    const pieces = Array.from({ length: 1 + random.below(8) }, () => random.pick(PIECES)).join('')
    const frame = random.pick(FRAMES)
    const template = random.once(4) ? pieces : frame[0] + pieces + frame[1]
    try {
      assert.equal(typeof rendered(template, DATA, LIMITS), 'string')
      ends.made++
    } catch (error) {
      if (error instanceof TemplateFailure) ends.failed++
      else if (error instanceof TemplateSyntaxError) ends.refused++
      else if (error instanceof MediationFault) ends.limited++
      else throw new Error(`${SEED} ${round} ${template}`, { cause: error })
    }
  }
  t.diagnostic(JSON.stringify(ends))
  assert.ok(ends.made > ROUNDS / 50 && ends.failed > ROUNDS / 50, JSON.stringify(ends))
})
