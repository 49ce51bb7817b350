"""Common knowledge of words: what is a kind of what, and what is said instead of what.

A question asks for "pets" and the memory says "my two dogs". With no model at hand, a hand-written table of everyday
life closes a part of that gap: `widen` gives, for the terms of a query, the groups of terms that may stand in an
answer. It is a table of general language, such as a person would write from memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from muniment.core.text.analyzer import analyze
from muniment.core.text.stems import IRREGULAR

__all__ = ["Group", "widen"]

_KINDS = """
pet, animal: dog puppy pup cat kitten hamster rabbit bunny parrot bird fish turtle horse guinea lizard snake
  ferret
animal, wildlife: dog cat horse cow pig sheep goat chicken bear wolf fox deer lion tiger elephant monkey bird
  whale dolphin turtle rabbit insect
dog: puppy pup labrador retriever shepherd poodle bulldog terrier beagle husky corgi leash
cat: kitten kitty
bird: parrot owl eagle hawk sparrow robin crow penguin duck goose chicken
family, relative: mother father mom dad parent son daughter brother sister wife husband kid child aunt uncle
  cousin grandmother grandfather niece nephew
parent: mother father mom dad
child, kid: son daughter boy girl baby toddler toddlers teenager newborn
sibling: brother sister twin
spouse, partner: husband wife fiance fiancee boyfriend girlfriend
relationship, marital, status: single married divorced dating engaged boyfriend girlfriend husband wife
  partner breakup
grandparent: grandmother grandfather
friend: buddy pal mate bestie friendship roommate neighbor
marry: wedding husband wife spouse engaged bride groom honeymoon anniversary
wedding: married bride groom marry reception ceremony honeymoon
colleague, coworker: teammate boss office work manager
sport: soccer football basketball baseball tennis golf hockey volleyball rugby cricket swimming running
  cycling skiing boxing surfing badminton gym athlete marathon climbing skating
sport, team: lakers league season championship match tournament coach
exercise, workout, fitness: yoga running gym jogging swimming cycling pilates weightlifting weights cardio
  boxing kickboxing hiking aerobics stretching squats pushups crossfit treadmill walk training
martial art: karate judo taekwondo kickboxing boxing jiu kung aikido mma wrestling
outdoor activity, outdoor: hiking camping fishing climbing mountaineering kayaking picnic cycling skiing
  surfing trail beach park rafting canoeing
activity, hobby, pastime, leisure, interest: painting reading swimming running hiking camping pottery cooking
  baking gardening dancing yoga music photography knitting drawing fishing cycling gaming chess writing
  singing surfing skiing sewing
recreation, free time: hobby game movie reading hiking music
music: song band concert guitar piano violin album singer musician playlist jazz rock pop rap classical
  orchestra melody festival
musical instrument, instrument: guitar piano violin drums flute clarinet saxophone cello trumpet ukulele harp
  bass keyboard
musician, artist, band, singer: concert album song tour gig
music event: concert festival gig recital show opera
genre: rock jazz pop classical fantasy thriller mystery romance horror comedy drama scifi hiphop country
art: painting drawing sculpture pottery mural sketch photography canvas gallery museum watercolor portrait
  craft ceramics exhibition
artwork: painting drawing sculpture portrait mural sketch
pottery: clay bowl cup pot vase mug ceramic kiln
craft: knitting sewing pottery crochet woodworking embroidery origami
paint: painting canvas watercolor brush acrylic portrait
book, novel, literature: read author novel story series chapter fantasy memoir biography library
book: title recommend
movie, film: cinema watch director actor trilogy documentary netflix comedy thriller
show, series: episode season watch netflix
game: chess console playstation xbox nintendo boardgame puzzle monopoly videogame multiplayer tournament
video game, gaming: console playstation xbox nintendo pc steam
food, dish, meal, cuisine: pizza pasta salad soup sushi chicken rice sandwich burger steak curry taco bread
  cake dinner lunch breakfast recipe cook vegetable fruit cheese seafood
dessert, sweet, treat, baked good, pastry: cake pie cookie brownie cobbler pudding chocolate cupcake muffin
  tart pastry cheesecake icecream donut macaron candy
drink, beverage: coffee tea wine beer juice water soda milk cocktail smoothie latte
fruit: apple banana orange strawberry blueberry mango grape peach pear cherry lemon watermelon pineapple
vegetable: carrot tomato potato broccoli spinach onion pepper cucumber lettuce kale
snack: chips popcorn nuts cookie candy fruit
diet: vegan vegetarian keto gluten calorie carbs protein
cook: recipe bake kitchen dish chef grill meal
restaurant: cafe diner bistro dinner menu chef
country, nation, abroad: usa america canada mexico england britain france germany italy spain sweden norway
  japan china korea india brazil australia ireland scotland greece turkey russia portugal netherlands thailand
  vietnam switzerland egypt
european country, europe: england britain france germany italy spain sweden norway denmark finland ireland
  scotland greece portugal netherlands belgium switzerland austria poland hungary iceland paris london rome
  berlin barcelona madrid
asian country, asia: japan china korea india thailand vietnam singapore indonesia malaysia philippines taiwan
  tokyo beijing seoul bali
state: california texas florida oregon washington colorado nevada arizona utah michigan minnesota ohio georgia
  virginia hawaii alaska montana illinois massachusetts tennessee
city, town: york paris london rome tokyo boston chicago seattle miami berlin barcelona francisco angeles
  denver toronto sydney dublin
place, location, where: park museum beach cafe restaurant library city town country mountain lake
area: county neighborhood region coast district
travel, trip, vacation, holiday, visit: flight hotel beach road tour roadtrip airport visit abroad cruise
  getaway sightseeing passport resort camping
trip: travel vacation roadtrip tour
nature: hiking forest mountain lake beach park waterfall trail sunset camping
park: hike trail
weather: rain snow sun storm sunny cold hot wind
season: spring summer autumn winter
job, career, work, profession, occupation, employment, living: job office company engineer teacher nurse
  doctor lawyer manager developer designer counselor chef writer artist accountant business hired promotion
  internship freelance banker
career: job counselor field study profession
company, employer, business: startup store shop firm client customer launch investor
field, major, degree, study, education: university college school psychology engineering biology history
  course class diploma graduate counseling medicine certificate
education, school: university college school class teacher student exam homework tuition
class, course, lesson: workshop learn teacher yoga pottery dance cooking training
skill: learn practice training
language: english spanish french german chinese japanese korean italian portuguese
teach: teacher class lesson tutor mentor
volunteer, charity, community service: shelter donate fundraiser homeless charity help food drive nonprofit
charity, cause: fundraiser donate awareness nonprofit homeless veterans education cancer hunger
donate: donation charity give fundraiser
help: support volunteer assist
event: concert festival parade conference party fair wedding race meeting workshop ceremony fundraiser show
  gala exhibition meetup tournament
celebration, party: birthday anniversary wedding graduation cake gift
community: group neighborhood local volunteer
religion, religious, faith, spiritual: church god prayer bible temple mosque christian jewish muslim buddhist
  faith
political, politics: election vote campaign office government party liberal conservative democrat republican
  rights
military, army: veteran soldier service navy officer war
patriotic: country serve military flag veteran
vehicle, transport, transportation, commute: car bike bus train truck motorcycle bicycle subway taxi prius van
car: drive prius tesla toyota honda ford bmw vehicle engine tire garage mechanic windshield
damage: broken crash accident flood dent scratch repair
accident: crash injury hospital hurt collision
clothes, clothing, outfit, wear: shirt dress jacket shoes jeans hat sweater boots fashion sneakers coat skirt
shoe: sneakers boots sandals heels
jewelry, accessory: necklace ring bracelet earrings watch pendant
item, possession, object, thing: bought doll camera necklace shoes book figurine car toy
gift, present: gave birthday surprise necklace
buy, purchase: bought got purchased ordered shopping store
shop, store, shopping: mall bought boutique market
device, gadget, electronics: phone laptop computer tablet camera headphones ipad iphone smartwatch
computer: laptop pc mac keyboard
home, house, live, residence: apartment condo room rent neighborhood mortgage move
move: moved relocate relocation apartment home
furniture: sofa couch table chair desk bed shelf lamp bookcase dresser
room: bedroom kitchen bathroom living basement
plant, flower, gardening, garden: rose tulip sunflower orchid lily succulent tomato seeds herb lavender soil
color: red blue green yellow purple pink black white orange brown gray teal
shape, symbol: heart cross star flag circle rainbow
health, medical, condition, illness, disease: doctor hospital sick pain surgery diagnosis medication therapy
  cancer diabetes allergy asthma injury flu
health issue, health problem: weight pain knee heart gastritis blood stomach
allergy, allergic: pollen peanut dust sneeze rash
doctor: hospital appointment clinic dentist surgeon physician dermatologist
mental health, therapy: therapist counselor anxiety depression counseling stress mindfulness
stress, destress, relax, unwind, calm: relax yoga meditation stress therapy peaceful bath massage unwind
  escape running reading
self care: yoga running reading meditation relax bath
feel, feeling, emotion, mood: happy sad excited nervous scared angry proud grateful anxious lonely thrilled
  upset
fear, afraid: scared phobia nervous spider heights
challenge, struggle, difficulty, obstacle, setback, problem: tough hard difficult struggling lost failed
  stress hurdle
achievement, accomplishment, award, success: won medal trophy prize promotion graduated award certificate
  winning
win: won trophy medal prize champion
goal, dream, aspiration, plan, ambition: hope want planning future dream goal
motivate, motivation, inspire, inspiration: inspired passion motivated encourage
passion, passionate, love: passion love enjoy
favorite, like, enjoy, prefer, preference: love favorite enjoy prefer fan
dislike, hate: hate dislike awful annoying
personality, trait, attribute, quality: kind caring thoughtful brave creative patient honest generous driven
  selfless
identity, gender, lgbtq: transgender gay lesbian queer woman pride bisexual
support: help encourage family friends
name: named called nickname
birthday, age, old, born: birthday turned years born
money, financial, finance, cost, price, income, afford: dollars expensive salary budget paid savings loan debt
  rich cheap
salary, pay: paid income wage earn
lose, lost: lost missing
injury: hurt sprained broke ankle knee
technology: software app computer robot programming internet
programming: python javascript java code software developer
science: physics chemistry biology research experiment lab
project: working build finished deadline
meet, met: met introduced encounter
start, begin, open: launched opened started began founded
finish, complete: finished completed done
attend, participate, join, participated: went joined attended participated signed
receive, get: received gave got gift
discuss, talk, mention: talked spoke chat told
research: researching looking study investigate
adopt, adoption: adopted agency foster
date, dating: boyfriend girlfriend tinder
sleep: bed nap insomnia tired
morning, routine: wake breakfast shower
beach, ocean, sea: sand waves surf shore swim coast
mountain: hike climb summit peak
water: lake river pool ocean swim
photo, picture, photography: camera photo photographer
social media: instagram tiktok facebook twitter youtube followers post
instagram: followers post
sale, sell: sold buyer customers
dance: dancing ballet salsa studio dancer contemporary choreography
camp, camping: tent campfire marshmallows
hike, hiking: trail mountain summit
run, running, race: marathon jog miles 5k
swim: pool beach
read: book novel
collect, collection: collect collector vinyl stamps coins figurines
inherit, heirloom: grandmother grandfather passed
die, death, passed, loss: died funeral passed grief goodbye lost
purchase, buy, shopping: bought order ordered store receipt sale
repair, fix: fixed broken mechanic replaced maintenance
clean, cleaning, chore: tidy vacuum laundry dishes mop declutter
grow up, childhood, hometown, origin: kid childhood hometown raised grew roots
roots, heritage, background: grandmother country culture tradition ancestors immigrant
breakup, divorce: separated ex boyfriend girlfriend husband wife
pregnant, pregnancy: baby expecting due newborn
nickname: called
instrument, play: guitar piano violin drums
concert: band tickets show festival singer stage
podcast, audiobook: listening episode
magazine, newspaper: issue article subscription reading
poem, poetry: poet verse writing
author, writer: book novel wrote poetry
movie, film, cinema: starwars marvel scene director sequel
superhero: marvel batman superman spiderman
science fiction, fantasy: dragons wizard magic space
board game, card game: chess monopoly catan poker scrabble
puzzle: jigsaw crossword sudoku
toy: doll lego figure teddy
ball game: soccer football basketball tennis baseball
water sport, water activity: swimming surfing kayaking diving sailing paddle snorkeling rafting
winter sport, winter activity: skiing snowboarding skating hockey sledding snow
extreme sport, adventure: skydiving bungee climbing surfing paragliding rafting
race, marathon: run ran 5k 10k miles finish training
medal, trophy, prize, award: won first place competition
competition, contest, tournament, championship: won final match medal trophy prize compete
athlete, player: team coach league training
team: teammates coach league season
baking, bake: cake bread cookies oven pastry recipe muffins
seafood: fish shrimp salmon lobster crab sushi tuna
meat: chicken beef pork steak bacon turkey lamb
breakfast: eggs pancakes oatmeal cereal toast coffee
italian food: pizza pasta lasagna risotto
asian food: sushi ramen curry noodles dumplings
mexican food: taco burrito salsa
alcohol: beer wine whiskey cocktail bar
coffee: espresso latte cafe brew
ingredient, recipe: flour sugar butter garlic sauce cheese
grocery: milk eggs bread vegetables supermarket
cafe: coffee tea
continent: europe asia africa america australia
island: hawaii bali caribbean maldives
landmark, attraction, tourist: tower museum castle bridge temple monument
museum: exhibit gallery history art
hotel, accommodation, stay: airbnb resort hostel room
flight, airline, fly: airport plane ticket boarding delta united
camera: photo lens canon nikon sony photography
phone: iphone android samsung call
laptop: macbook dell computer
headphone, audio, speaker: earbuds bluetooth sound
app, software, tool: platform website online
website, blog: online post page
subscription, streaming: netflix spotify hulu disney
email, message, letter: wrote text sent note
bank, loan, mortgage: interest rate credit approved
insurance, tax: policy claim
budget, saving, save: money expenses spend
rent: apartment landlord lease
apartment: condo flat rent lease
kitchen: stove oven fridge sink appliance
appliance: fridge oven toaster blender mixer microwave vacuum
decor, decoration, decorate: painting lights wall frame candle plants
bed: mattress sleep bedroom
tree: oak pine maple cherry
flower: rose tulip sunflower lily daisy orchid bouquet
garden: plants vegetables herbs flowers
farm: cow chicken goat barn crops
fish, aquarium: tank goldfish betta tropical
horse: ride riding stable
doctor, specialist, physician: dermatologist dentist cardiologist appointment surgeon
medicine, medication, drug: pills prescription dose antibiotics
symptom, sick, ill: fever cough headache pain cold flu
injury, injured, hurt: ankle knee back broken sprained wrist
weight: pounds kilos diet lost
surgery, operation: hospital recovery
disability: wheelchair blind deaf
allergy: peanuts dairy gluten pollen cats nuts
glasses, vision: eyes contacts
hair: haircut blonde brown curly salon
tattoo: ink
makeup, skincare, beauty: lotion cream serum lipstick
therapist, counselor: session therapy mental
anxiety, anxious, worried, worry: nervous stressed panic afraid
happy, joy: glad thrilled excited delighted
sad, upset: crying heartbroken depressed disappointed
angry: mad furious upset annoyed
proud: accomplishment achievement
hope, wish, want: dream goal looking forward
value, believe, belief, opinion, think: important matter believe
lesson, learned, realize, insight: realized learned taught reminded
advice, tip, suggest, recommend, suggestion, recommendation: recommended suggested try advice
decision, decide, choose: decided chose picked
change: changed switched new different
improve, improvement: better improved progress
success, successful: achieved goal accomplished
failure, fail: failed lost rejected
support, supportive: encouraged friends family cheer
influence, role model, admire: inspired mentor hero idol
mentor, coach: guidance mentee program
leader, leadership, lead: manager director head captain
interview: job application hired offer
promotion: promoted manager raise
resign, quit, retire: left job quit retired
business, startup: launch store customers investor studio shop
marketing, advertise: campaign ads social promotion
client, customer: sale project service
meeting, conference: presentation attended talk
workshop, seminar: attended learned class
exam, test, certification: passed score grade certificate
scholarship: college tuition award
thesis, paper: research writing
school, university, college: campus class student graduate degree
teacher: school class students teach
student: school class university
law, legal: lawyer court attorney case
police, crime: officer arrested theft stolen
fire: firefighter burning rescue
disaster: flood earthquake hurricane storm fire tornado
environment, climate, sustainability: recycling pollution solar ocean plastic conservation
politics, election: vote campaign candidate mayor
protest, activism, activist: rally march rights petition
immigrant: country visa moved citizenship
war: soldier army veteran
homeless: shelter food
donation, fundraiser, raise money: donated charity raised
church: pastor prayer faith mass
holiday: christmas thanksgiving easter halloween hanukkah
christmas: tree gifts santa
halloween: costume pumpkin
birthday: cake party turned gift
anniversary: years married celebrate
funeral: died passed
graduation, graduate: degree diploma ceremony
tradition, ritual: every year family celebrate
weekend: saturday sunday
neighbor, neighborhood: street community next door
roommate: apartment share
boss: manager supervisor
group, club: joined member meetup community
magic, trick: cards magician
painting: canvas watercolor sunset landscape portrait abstract
landscape, scenery, view: sunset mountain lake beach
color: red blue green
size, height, tall: inches feet cm
speed, fast: mph minutes
distance: miles kilometers km
time, duration: minutes hours weeks
temperature: degrees hot cold
宠物: 狗 猫 小狗 小猫 兔子 仓鼠 鱼 鸟
家人, 家庭: 爸爸 妈妈 父亲 母亲 哥哥 姐姐 弟弟 妹妹 儿子 女儿 丈夫 妻子
孩子: 儿子 女儿
工作, 职业: 公司 工程师 老师 医生 上班
爱好, 兴趣: 喜欢 画画 读书 游泳 跑步 音乐 摄影 爬山
运动: 跑步 游泳 篮球 足球 网球 羽毛球 健身 瑜伽
食物, 吃: 米饭 面条 火锅 饺子 蛋糕 水果
水果: 苹果 香蕉 橙子 葡萄 西瓜 草莓
乐器: 钢琴 吉他 小提琴 鼓
旅行, 旅游: 机票 酒店 景点
搬家, 住: 搬到 搬家 公寓
애완동물, 반려동물: 강아지 고양이 햄스터 토끼
가족: 아버지 어머니 아빠 엄마 형 누나 오빠 언니 동생 아들 딸 남편 아내
아이, 자녀: 아들 딸
직업, 직장: 회사 일 선생님 의사 엔지니어
취미: 그림 독서 수영 음악 사진 등산 요리
운동: 달리기 수영 농구 축구 테니스 요가 헬스
음식: 밥 김치 국수 치킨 피자 케이크
과일: 사과 바나나 포도 수박 딸기
악기: 피아노 기타 바이올린 드럼
여행: 비행기 호텔 관광
이사, 살다: 이사 아파트
"""


Group = tuple[frozenset[str], frozenset[str]]
"""The terms of a head, and the terms that may stand for it."""


@cache
def _heads() -> dict[str, list[tuple[str, str]]]:
    """The sign that a term begins with → the heads that may have such a term, and the words of their lines."""
    found: dict[str, list[tuple[str, str]]] = {}
    for line in _KINDS.replace("\n  ", " ").strip().splitlines():
        heads, _, members = line.partition(":")
        for head in heads.split(","):
            signs = {IRREGULAR.get(word, word)[0] for word in head.split()} if head.isascii() else set(head)
            for sign in signs:
                found.setdefault(sign, []).append((head, members))
    return found


@cache
def _table(sign: str) -> dict[str, list[tuple[frozenset[str], str]]]:
    """Of the heads under one sign: a term of a head → all its terms, and the words of its line."""
    found: dict[str, list[tuple[frozenset[str], str]]] = {}
    for head, members in _heads()[sign]:
        terms = frozenset(_key_terms(head))
        if terms:
            found.setdefault(min(terms), []).append((terms, members))
    return found


@cache
def _group(members: str) -> frozenset[str]:
    """The terms of a line's words."""
    return frozenset(term for word in members.split() for term in _key_terms(word))


def _key_terms(word: str) -> list[str]:
    """The terms that tell a word apart: of Chinese and Korean words the pairs alone, where there are any."""
    terms = analyze(word)
    pairs = [term for term in terms if not term.isascii() and len(term) == 2 and term[0] != "^"]
    return pairs or [term for term in terms if term[0] != "^"]


def widen(terms: Iterable[str]) -> list[Group]:
    """What the terms of a question ask for → the terms that may stand in an answer, never those of the question.

    Of two heads that match, one inside the other ("country", "european country"), the narrower one counts.
    """
    asked = set(terms)
    merged: dict[frozenset[str], frozenset[str]] = {}
    heads = _heads()  # read as far as it is asked for: a stem for each word of the table takes a while
    for term in sorted(asked):
        for head, members in _table(term[0]).get(term, ()) if term[0] in heads else ():
            if head <= asked:
                merged[head] = merged.get(head, frozenset()) | (_group(members) - asked)
    return [(head, group) for head, group in merged.items() if group and not any(head < other for other in merged)]
