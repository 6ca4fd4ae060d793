//! The words of generated texts, written for this purpose: each list contains words or short
//! phrases separated by commas.

/// Words that headlines omit.
pub(crate) const FUNCTION_WORDS: &str = "\
    a,an,and,are,as,at,be,been,being,by,for,had,has,have,her,his,is,it,its,of,that,the,\
    their,these,this,those,to,was,were,which,who,will,with,would";

pub(crate) const WHO: &str = "\
    man,woman,boy,girl,child,baby,kid,person,lady,guy,teacher,doctor,nurse,player,soldier,\
    worker,farmer,chef,singer,dancer,cyclist,runner,swimmer,student,policeman,dog,cat,puppy,\
    kitten,horse,cow,sheep,bird,duck,monkey,elephant,tiger,lion,bear,panda,rabbit,couple,\
    group,crowd,team,family,band";

/// Adjectives for people and things.
pub(crate) const ADJECTIVES: &str = "\
    young,old,small,large,little,tall,brown,black,white,red,blue,green,yellow,happy,tired,\
    wet,big,new,wooden,empty,busy";

/// Quantities greater than one.
pub(crate) const COUNTS: &str = "two,three,some,several,many,";

/// What people are doing to things.
pub(crate) const DOES: &str = "\
    playing,riding,holding,carrying,cutting,slicing,chopping,peeling,cooking,eating,\
    drinking,pouring,mixing,washing,cleaning,painting,drawing,writing,reading,throwing,\
    catching,kicking,hitting,pushing,pulling,driving,opening,closing,feeding,watching,\
    chasing,jumping over,sitting on,standing near,walking past,running towards,climbing,\
    lying on,sleeping on,looking at,talking about,dancing with,swimming in,waiting for,\
    fixing,building,breaking,buying,selling,wearing,smelling,biting,licking,lifting,\
    shooting,folding,tying,stirring,frying,boiling,grating,spreading,putting away,\
    taking out";

/// What is being done to things.
pub(crate) const DONE: &str = "\
    played,held,carried,cut,sliced,chopped,peeled,cooked,eaten,mixed,washed,cleaned,painted,\
    thrown,caught,kicked,pushed,pulled,driven,opened,closed,lifted,folded,stirred,fried,\
    boiled,broken,bought,sold";

/// What people are doing without an object.
pub(crate) const STANDS: &str = "\
    sits,stands,lies,waits,plays,runs,walks,jumps,sleeps,looks,swims";

pub(crate) const WHAT: &str = "\
    guitar,piano,violin,flute,drum,trumpet,bicycle,motorcycle,horse,car,truck,bus,train,\
    boat,plane,skateboard,surfboard,ball,football,basketball,frisbee,stick,rope,bag,box,\
    book,newspaper,letter,phone,computer,camera,television,door,window,table,chair,bench,\
    couch,bed,fence,wall,tree,flower,grass,garden,onion,potato,tomato,carrot,pepper,garlic,\
    apple,banana,orange,lemon,egg,fish,shrimp,meat,chicken,beef,rice,pasta,bread,cake,pizza,\
    cheese,butter,sandwich,soup,salad,sauce,milk,water,coffee,tea,beer,glass,cup,bowl,plate,\
    pan,pot,knife,spoon,shirt,hat,dress,coat,shoe,umbrella,sword,gun,paper,picture,toy,doll,\
    snow,sand,rock,river,lake,pool,ocean,bridge,road,mountain";

pub(crate) const WHERE: &str = "\
    in the kitchen,on the street,at the beach,in the park,on a stage,in the water,\
    in a field,on the grass,in the snow,outside,indoors,at night,in front of a house,\
    near a river,in the rain,on the floor,behind a fence,by the road,in a room,on a hill,\
    at a table,under a tree";

/// Beginnings of questions and advice.
pub(crate) const ASKS: &str = "\
    how do I,should I,can you,why does,what is the best way to,is it okay to,you should,\
    I want to,do not";

/// What one may do to things.
pub(crate) const ACTS: &str = "\
    clean,cook,cut,fix,build,paint,carry,play,buy,sell,open,close,wash,store,use,move,\
    replace,remove,keep,hold,find,choose";

pub(crate) const COUNTRIES: &str = "\
    China,Russia,India,Pakistan,Iran,Iraq,Syria,Egypt,Israel,Gaza,Turkey,Greece,Spain,Italy,\
    France,Germany,Britain,UK,US,Ukraine,Japan,Korea,Afghanistan,Libya,Sudan,Nigeria,Kenya,\
    Brazil,Mexico,Canada,Australia,Indonesia,Philippines,Bangladesh,Thailand,EU,UN,NATO";

pub(crate) const PEOPLE: &str = "\
    president,prime minister,police,government,opposition,court,judge,army,rebels,\
    protesters,minister,senator,bank,company,union,workers,students,officials,lawmakers,\
    coach,striker,actor,singer,scientists,doctors,soldiers,militants,central bank,\
    parliament,voters,pope,king";

pub(crate) const SAYS: &str = "\
    condemns,rejects,approves,denies,announces,delays,cancels,wins,loses,ends,starts,\
    survives,faces,warns of,calls for,votes on,agrees to,backs,opposes,reports,investigates,\
    fears,halts,resumes,plans,welcomes,blames,protests against,seeks,suspends";

pub(crate) const EVENTS: &str = "\
    earthquake,flood,storm,bomb blast,explosion,plane crash,train crash,fire,shooting,\
    attack,air strike,protest,strike,election,vote,summit,talks,trial,ceasefire,sanctions,\
    deal,merger,budget,tax rise,job cuts,rate cut,oil spill,outbreak,landslide,\
    ferry sinking,coup,hostage crisis,referendum,world cup,final,game,tour,visit,law,ban,\
    report,investigation";

/// What happens to people.
pub(crate) const HARMED: &str = "\
    killed,injured,dead,missing,arrested,wounded,trapped,rescued,evacuated";

/// Traded goods.
pub(crate) const MARKETS: &str = "\
    stocks,shares,oil prices,gold prices,sales,profits,the dollar,the euro,exports,\
    house prices,unemployment";

/// Connections of a market movement with an event.
pub(crate) const BECAUSE: &str = "after,on,ahead of,amid,despite";

/// How many people are affected.
pub(crate) const MANY: &str = "two,three,four,five,dozens,hundreds,thousands,many,at least ten";

/// What an event does to a country.
pub(crate) const HITS: &str = "hits,kills,rocks,shakes,strikes,threatens,divides";

/// How a price moves.
pub(crate) const MOVES: &str = "rise,fall,jump,drop,surge,slump,rally,slip,climb,tumble";
