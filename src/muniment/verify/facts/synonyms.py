"""Words that can stand for each other, and words that exclude each other: general English, written from memory.

One line of `_ALIKE` is a group any member of which may restate another. One line of `_OPPOSED` has two such groups that
contradict each other. The tables hold the everyday words of reports, talk, business and science, not those of a text.
"""

from __future__ import annotations

from functools import cache

from muniment.core.text.stems import stem

__all__ = ["alike", "opposed"]

_ALIKE = """
say tell state claim mention note remark declare announce report comment explain express describe assert add according
say talk speak discuss converse chat communicate
think believe feel consider opine reckon regard deem view opinion thought belief
expect anticipate forecast project predict foresee estimate guidance outlook expectation
plan intend aim propose schedule decide mean going plot strategy intention
suggest propose recommend advise indicate imply hint suggestion recommendation
agree accept confirm consent concur settle approve agreement
see witness observe experience identify notice spot view watch look
show demonstrate reveal display illustrate exhibit present prove indicate reflect depict
use utilize employ apply leverage adopt usage application
make create produce build construct develop generate form design devise craft establish
start begin launch commence initiate open introduce kick onset
stop end finish cease halt conclude terminate quit complete close
help assist aid support contribute facilitate enable assistance
improve enhance boost strengthen better upgrade refine improvement enhancement
important significant crucial key essential vital critical major main principal
big large huge substantial considerable great massive sizable significant enormous major
small little minor slight tiny modest minimal
many numerous several multiple various lot plenty diverse different
good great excellent strong positive favorable solid nice fine
bad poor negative unfavorable weak terrible awful
new novel recent fresh latest modern
method approach technique algorithm procedure scheme framework strategy process way
model system architecture network framework
paper work study research article author investigation
result finding outcome performance
problem issue challenge difficulty trouble concern
task problem objective goal
learn train acquire understand master study infer
achieve attain reach obtain gain accomplish
get obtain receive acquire gain buy purchase pick grab fetch
give provide offer supply deliver grant hand present
need require must necessary demand should requirement
want wish desire like hope would
try attempt seek effort endeavor sample taste test
ask request inquire question query enquire
answer reply respond response
meet gather join encounter see meeting gathering
go travel head visit attend come leave move
buy purchase acquire get
sell sale trade
pay payment spend cost
cost expense price expenditure
money cash fund funding capital
revenue sale income turnover
profit earning income margin
buyback repurchase
dividend payout distribution
quarter q1 q2 q3 q4 three-month
company firm business corporation organization enterprise
customer client consumer user shopper
employee worker staff personnel
worker labourer employee
boss manager leader head chief
team group crew squad side
person people individual human someone
man guy male gentleman
woman lady female
child kid baby infant youngster toddler son daughter
boy son lad
girl daughter
mother mum mom parent
father dad parent
husband spouse partner
wife spouse partner
friend pal buddy mate
police officer cop authority
investigate probe examine inquiry look analyze investigation
arrest detain custody seize hold
kill murder slay death die shoot dead
die death dead pass killed fatal
hurt injure wound harm injury
attack assault strike hit raid
fire blaze burn
crash collide accident collision wreck
court judge trial tribunal
convict guilty sentence jail
jail prison imprison custody lock behind
accuse charge allege blame indict
steal rob theft take burgle
hide conceal cover
fight battle struggle combat clash
win victory beat defeat triumph
lose defeat loss
score goal net
game match fixture play
player footballer striker midfielder defender star
coach manager boss
club team side
start begin open
old elderly aged former
young youthful
home house residence property
car vehicle auto
plane aircraft jet flight airplane
ship boat vessel
road street highway
shop store outlet
picture photo image photograph snap
film movie
video footage clip
letter note message
post publish share upload
party celebration event
job work employment role position career
school college university
doctor physician medic
hospital clinic medical
sick ill unwell disease illness
drug medicine medication
food meal dish
evening night tonight
morning dawn
week seven-day
agree settle
relationship connection link correlation relation tie association
between among
responsible accountable liable charge
different distinct distinctive diverse various alternative
type kind sort variety category brand
part portion section component piece element
whole entire full complete total overall
fast quick rapid swift
slow gradual
easy simple straightforward effortless
hard difficult tough challenging tricky
clear obvious evident apparent
correct right accurate true
wrong incorrect inaccurate false mistaken
change alter modify adjust transform shift modification
keep maintain retain preserve hold sustain continue remain stay
continue proceed carry persist ongoing remain
choose select pick opt decide
combine merge integrate join unite incorporate
include contain comprise involve feature incorporate cover
compare contrast relative versus
focus concentrate emphasis center
allow permit let enable
prevent avoid stop block
cause lead result due owing because produce
due owing because thanks attributable driven
despite although though regardless notwithstanding
also additionally furthermore moreover too
about regarding concerning around approximately roughly
almost nearly roughly approximately
often frequently regularly usually commonly
always constantly continually
now currently presently today
soon shortly
later afterwards subsequently after
before prior previous previously earlier
first initial initially
final last ultimate
worried anxious concerned nervous
happy glad pleased delighted joyful satisfied
sad unhappy upset depressed
angry furious mad annoyed irritated
surprised shocked astonished amazed
excited thrilled eager enthusiastic
afraid scared frightened
tired exhausted
love adore enjoy like
hate dislike detest loathe
beautiful pretty lovely gorgeous attractive
funny amusing hilarious
strange odd weird unusual
famous celebrated renowned well-known popular
rich wealthy
poor impoverished
remember recall recollect
forget neglect
remind prompt
invite ask
promise pledge vow swear
apologize sorry apology
thank grateful thankful appreciate gratitude
congratulate congratulation
complain grumble object protest
argue dispute debate quarrel contend
refuse decline reject deny turn
borrow lend loan
send mail forward deliver dispatch ship email
call phone telephone ring dial
wait await
arrive reach come get
leave depart exit go
return come back
bring carry take fetch
drive ride
cook prepare bake make
clean tidy wash
fix repair mend resolve solve
break damage destroy smash
check verify inspect examine confirm
teach instruct train educate
evaluate assess measure test validate evaluation
experiment empirical test trial
outperform surpass exceed beat better superior state-of-the-art
performance result accuracy
efficient effective productive
robust resilient stable
data dataset information
image picture visual
function mapping
parameter weight
optimize optimise optimization minimize
representation embedding encoding feature
agent policy
environment setting world
propose present introduce suggest put
novel new
demonstrate show validate prove
analyze analyse examine study explore investigate analysis
explore investigate examine
address tackle deal handle solve
extend expand broaden
reduce lower decrease cut diminish minimize reduction
remote control controller
button key
price cost pricing
market industry sector
growth increase expansion
strong robust solid
weak soft
impact effect influence affect
pandemic covid coronavirus
guidance outlook forecast
approximately about around roughly nearly
range between bracket interval
share stock per
total overall aggregate
net bottom
annual yearly year
monthly month
daily day
fund finance
invest investment
debt borrowing liability
acquire acquisition buy purchase takeover
partner ally collaborate partnership collaboration cooperate
meeting session conference discussion
document report paper file
decide determine resolve decision conclude
discuss debate talk deliberate discussion conversation
present introduce show presentation
mention note raise bring
emphasize stress highlight underline underscore
worry concern fear
responsible charge
designer design
look appear seem appearance
style design fashion
object item thing article entity
group team class
member participant
professor teacher lecturer tutor
student pupil learner
minister secretary
government administration state
law legislation act bill
policy rule regulation
country nation state
city town
area region zone district
world global international
local regional
public open
private personal
support back endorse favor
oppose object resist against
hope optimistic optimism
fail unable failure unsuccessful
succeed success successful manage
able can capable could
possible potential likely might may
probably likely presumably
certain sure definite confident
"""

_OPPOSED = """
increase rise grow growth climb jump gain surge expand raise boost higher high soar upward expansion |
  decrease decline fall drop reduce reduction lower low dip slump shrink cut diminish slide downward contraction
more greater above exceed | less fewer below
most maximum maximize highest largest biggest | least minimum minimize lowest smallest fewest
improve better enhance improvement strengthen best positive strong good |
  worsen deteriorate worse weaken decline worst negative weak poor bad
accept agree approve confirm allow permit grant consent |
  reject refuse deny decline forbid ban disapprove disagree prohibit dismiss
win won beat victory victorious | lose lost defeat loss defeated
succeed success successful successfully pass | fail failure unsuccessful unsuccessfully
start begin launch open commence | stop end finish close cease conclude
love like enjoy adore prefer | hate dislike dread loathe detest
arrest detain imprison jail convict guilty sentence charge accuse | release free acquit innocent clear exonerate
admit confess acknowledge | deny denied
find found discover | lose lost miss
remember recall | forget forgot
buy purchase bought | sell sold
give lend send | take receive borrow
arrive enter come join | leave depart exit quit
before earlier prior previous precede | after later following subsequent
first | last final second
early | late
old older former elderly | new young younger newer
big large huge great | small little tiny minor
long | short brief
fast quick rapid rapidly quickly | slow slowly gradual
hot warm | cold cool
easy simple | hard difficult complex tough
safe secure | dangerous unsafe risky
rich wealthy | poor
happy glad pleased delighted | sad unhappy upset angry disappointed
true correct right accurate | false incorrect wrong inaccurate
same similar alike identical | different distinct dissimilar
always frequently often usually | never rarely seldom
all every everyone everything | none nobody nothing
some | none
inside within into | outside
include including | exclude excluding except
support favor back endorse encourage | oppose against discourage condemn
possible able can | impossible unable
likely probable | unlikely improbable
certain sure clear | uncertain unsure unclear
important significant essential crucial key | unimportant insignificant trivial minor
public | private
male | female
man | woman
boy | girl
father | mother
north northern | south southern
east eastern | west western
left | right
top upper | bottom lower
day daytime morning | night evening
morning | afternoon evening night
today | tomorrow yesterday
alive survive survived living live | dead die died killed
build construct create | destroy demolish
attack | defend
add added | remove delete subtract removed
connect join attach unite | separate disconnect split divorce
married marry | divorced divorce
friend ally | enemy foe
legal lawful | illegal unlawful
guilty | innocent
hire employ appoint | fire sack dismiss
lead ahead | trail behind
peace | war
healthy well | sick ill
strong robust | weak fragile
supervised | unsupervised
on-policy | off-policy
online | offline
linear | nonlinear non-linear
local | global
static | dynamic
discrete | continuous
sparse | dense
deep | shallow
efficient efficiency | inefficient inefficiency
deterministic | stochastic random
positive favorable | negative unfavorable
profit gain | loss
ease relax loosen | tighten restrict
optimistic confident hopeful | pessimistic doubtful skeptical concerned
cheap inexpensive affordable | expensive costly
full | empty
single | multiple
internal | external
domestic | foreign overseas international
temporary | permanent
voluntary | compulsory mandatory
outperform exceed superior surpass | underperform inferior
short-term | long-term
upgrade | downgrade
praise | criticize criticise slam blast
help assist aid | hinder hurt harm
protect | harm damage
hide conceal | reveal show disclose
borrow | lend
push | pull
ask question | answer reply
teach | learn
tight | loose
with | without
despite although | because due
happily | sadly
sister | brother
boyfriend | girlfriend
husband | wife
son | daughter
king | queen
uncle | aunt
"""


@cache
def _groups() -> dict[str, frozenset[str]]:
    """A stem → the stems that may stand for it."""
    found: dict[str, set[str]] = {}
    sides = [side for line in _OPPOSED.replace("\n  ", " ").strip().splitlines() for side in line.split("|")]
    for line in [*_ALIKE.strip().splitlines(), *sides]:
        members = {stem(word) for word in line.split()}
        for member in members:
            found.setdefault(member, set()).update(members)
    return {member: frozenset(group - {member}) for member, group in found.items()}


@cache
def _opposites() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for line in _OPPOSED.replace("\n  ", " ").strip().splitlines():
        left, right = ({stem(word) for word in side.split()} for side in line.split("|"))
        for one, other in ((left, right), (right, left)):
            for member in one - other:
                found.setdefault(member, set()).update(other - one)
    return {member: frozenset(group) for member, group in found.items()}


def alike(term: str) -> frozenset[str]:
    """Stems of words that may restate the word of this stem."""
    return _groups().get(term, frozenset())


def opposed(term: str) -> frozenset[str]:
    """Stems of words that contradict the word of this stem."""
    return _opposites().get(term, frozenset())
